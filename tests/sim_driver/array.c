/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Array -- opaque images: their sizes, and when they go
 *
 * Nothing can be read from one here; what counts is that they hold memory, that
 * they die with their context, and that destroying one waits for it (3B).
 */

#include <stdlib.h>
#include "memory.h"

struct image {
        struct sim_context *context;
        CUDA_ARRAY3D_DESCRIPTOR shape;
        unsigned int levels; /* 0: an array */
        uint64_t physical;
        uint64_t bytes;
        struct image *next;
};

static struct image *images;

static uint64_t format_bytes(CUarray_format format)
{
        switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
                return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
                return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
                return 4;
        default:
                return 0;
        }
}

static bool is_valid(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
        return shape && shape->Width && format_bytes(shape->Format) &&
               (shape->NumChannels == 1 || shape->NumChannels == 2 || shape->NumChannels == 4);
}

static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
        uint64_t level = format_bytes(shape->Format) * shape->NumChannels * shape->Width *
                         (shape->Height ? shape->Height : 1) * (shape->Depth ? shape->Depth : 1);

        /* All smaller levels together are less than the largest. */
        return sim_round(levels > 1 ? 2 * level : level, SIM_PAGE);
}

static CUresult image_new(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels,
                          struct image **image)
{
        struct sim_context *context;
        struct image *new;
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_current(&context);
        if (result != CUDA_SUCCESS)
                return result;
        new = calloc(1, sizeof(*new));
        if (!new)
                return CUDA_ERROR_OUT_OF_MEMORY;
        new->context = context->green_parent ? context->green_parent : context;
        new->shape = *shape;
        new->levels = levels;
        new->bytes = bytes_of(shape, levels);
        result = sim_physical_take(context->device, new->bytes, &new->physical);
        if (result != CUDA_SUCCESS) {
                free(new);
                return result;
        }
        new->next = images;
        images = new;
        *image = new;
        return CUDA_SUCCESS;
}

static struct image **find(const void *handle)
{
        struct image **link = &images;

        while (*link && *link != handle)
                link = &(*link)->next;
        return link;
}

static void image_free(struct image **link)
{
        struct image *image = *link;

        *link = image->next;
        sim_physical_give(image->context->device, image->physical, image->bytes);
        free(image);
}

void sim_arrays_close(struct sim_context *context)
{
        struct image **link = &images;

        while (*link) {
                if ((*link)->context == context)
                        image_free(link);
                else
                        link = &(*link)->next;
        }
}

static CUresult image_destroy(const void *handle, bool mipmapped)
{
        struct image *image = *find(handle);
        CUresult result = sim_capture_unsafe();

        if (result == CUDA_SUCCESS)
                result = sim_context_soft();
        if (result != CUDA_SUCCESS)
                return result;
        if (!image || (image->levels != 0) != mipmapped)
                return CUDA_ERROR_INVALID_HANDLE;
        sim_wait_context(image->context);
        if (!*find(handle))
                return CUDA_ERROR_INVALID_HANDLE;
        image_free(find(handle));
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
        SIM_ENTER(cuArrayCreate_v2);
        CUDA_ARRAY3D_DESCRIPTOR shape = {0};
        struct image *image;
        CUresult result;

        if (!array || !desc)
                return CUDA_ERROR_INVALID_VALUE;
        shape.Width = desc->Width;
        shape.Height = desc->Height;
        shape.Format = desc->Format;
        shape.NumChannels = desc->NumChannels;
        if (!is_valid(&shape))
                return CUDA_ERROR_INVALID_VALUE;
        result = image_new(&shape, 0, &image);
        if (result == CUDA_SUCCESS)
                *array = (CUarray)image;
        return result;
}

CUresult CUDAAPI cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
        SIM_ENTER(cuArray3DCreate_v2);
        struct image *image;
        CUresult result;

        if (!array || !is_valid(desc))
                return CUDA_ERROR_INVALID_VALUE;
        result = image_new(desc, 0, &image);
        if (result == CUDA_SUCCESS)
                *array = (CUarray)image;
        return result;
}

CUresult CUDAAPI cuArrayDestroy(CUarray array)
{
        SIM_ENTER(cuArrayDestroy);

        return image_destroy(array, false);
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array)
{
        SIM_ENTER(cuArrayGetDescriptor_v2);
        const struct image *image = *find(array);

        if (!desc)
                return CUDA_ERROR_INVALID_VALUE;
        if (!image)
                return CUDA_ERROR_INVALID_HANDLE;
        desc->Width = image->shape.Width;
        desc->Height = image->shape.Height;
        desc->Format = image->shape.Format;
        desc->NumChannels = image->shape.NumChannels;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array)
{
        SIM_ENTER(cuArray3DGetDescriptor_v2);
        const struct image *image = *find(array);

        if (!desc)
                return CUDA_ERROR_INVALID_VALUE;
        if (!image)
                return CUDA_ERROR_INVALID_HANDLE;
        *desc = image->shape;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *array,
                                        const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
        SIM_ENTER(cuMipmappedArrayCreate);
        struct image *image;
        CUresult result;

        if (!array || !is_valid(desc) || !levels)
                return CUDA_ERROR_INVALID_VALUE;
        result = image_new(desc, levels, &image);
        if (result == CUDA_SUCCESS)
                *array = (CUmipmappedArray)image;
        return result;
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray array)
{
        SIM_ENTER(cuMipmappedArrayDestroy);

        return image_destroy(array, true);
}
