/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Module -- where kernels are looked up
 *
 * No image is read: every one holds the kernels of kernel.c. Loading and
 * unloading wait for the context (table 3B); unloading is unsafe in a capture.
 */

#include "kernel.h"

#include <stdlib.h>

/* Guarded by: sim_mutex. */
static struct sim_module *modules;

static struct sim_module *module_new(struct sim_context *context)
{
        struct sim_module *module = sim_handle_new(SIM_MODULE, sizeof(*module));

        module->context = context;
        module->next = modules;
        modules = module;
        return module;
}

static void module_delete(struct sim_module *module)
{
        struct sim_module **place = &modules;

        while (*place != module)
                place = &(*place)->next;
        *place = module->next;
        while (module->functions) {
                struct sim_function *function = module->functions;

                module->functions = function->next;
                free(function);
        }
        sim_handle_free(&module->handle);
}

void sim_modules_close(struct sim_context *context)
{
        struct sim_module *module = modules;

        while (module) {
                struct sim_module *next = module->next;

                if (module->context == context)
                        module_delete(module);
                module = next;
        }
}

static CUresult find_function(struct sim_module *module, const char *name, bool is_kernel,
                              struct sim_function **found)
{
        const struct sim_kernel *kernel = sim_kernel_find(name);
        struct sim_function *function = module->functions;

        if (!kernel)
                return CUDA_ERROR_NOT_FOUND;
        while (function && (function->kernel != kernel || function->is_kernel != is_kernel))
                function = function->next;
        if (!function) {
                function = calloc(1, sizeof(*function));
                if (!function)
                        sim_abort("out of host memory");
                function->kernel = kernel;
                function->module = module;
                function->is_kernel = is_kernel;
                function->next = module->functions;
                module->functions = function;
        }
        *found = function;
        return CUDA_SUCCESS;
}

/* ---- modules ---- */

static CUresult load(CUmodule *module, const void *image)
{
        struct sim_context *context;
        CUresult result = sim_current(&context);

        if (result)
                return result;
        if (!module || !image)
                return CUDA_ERROR_INVALID_VALUE;
        sim_wait_context(context);
        *module = (CUmodule)module_new(context);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *path)
{
        SIM_ENTER(cuModuleLoad);
        return load(module, path);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
        SIM_ENTER(cuModuleLoadData);
        return load(module, image);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                    CUjit_option *options, void **values)
{
        SIM_ENTER(cuModuleLoadDataEx);
        (void)count, (void)options, (void)values;
        return load(module, image);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
        SIM_ENTER(cuModuleLoadFatBinary);
        return load(module, image);
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle)
{
        struct sim_context *context;
        CUresult result;

        SIM_ENTER(cuModuleUnload);
        result = sim_current(&context);
        if (result)
                return result;
        sim_handle_check(handle, SIM_MODULE);
        result = sim_capture_unsafe();
        if (result)
                return result;
        sim_wait_context(context);
        module_delete((struct sim_module *)handle);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
        SIM_ENTER(cuModuleGetFunction);
        if (!function || !name)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(handle, SIM_MODULE);
        return find_function((struct sim_module *)handle, name, false,
                             (struct sim_function **)function);
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule handle,
                                      const char *name)
{
        SIM_ENTER(cuModuleGetGlobal_v2);
        (void)address, (void)bytes;
        if (!name)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(handle, SIM_MODULE);
        return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
        SIM_ENTER(cuFuncGetAttribute);
        if (!value || !function)
                return CUDA_ERROR_INVALID_VALUE;
        *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
        SIM_ENTER(cuFuncSetAttribute);
        (void)attribute, (void)value;
        return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuFuncGetModule(CUmodule *module, CUfunction function)
{
        SIM_ENTER(cuFuncGetModule);
        if (!module || !function)
                return CUDA_ERROR_INVALID_VALUE;
        *module = (CUmodule)((struct sim_function *)function)->module;
        return CUDA_SUCCESS;
}

/* ---- libraries: modules of no context ---- */

#if CUDA_VERSION >= 12000
static CUresult load_library(CUlibrary *library, const void *image)
{
        if (!library || !image)
                return CUDA_ERROR_INVALID_VALUE;
        *library = (CUlibrary)module_new(NULL);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit,
                                   void **jit_values, unsigned int jit_count,
                                   CUlibraryOption *options, void **values, unsigned int count)
{
        SIM_ENTER(cuLibraryLoadData);
        (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
        return load_library(library, image);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit,
                                       void **jit_values, unsigned int jit_count,
                                       CUlibraryOption *options, void **values, unsigned int count)
{
        SIM_ENTER(cuLibraryLoadFromFile);
        (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
        return load_library(library, path);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library)
{
        SIM_ENTER(cuLibraryUnload);
        sim_handle_check(library, SIM_MODULE);
        module_delete((struct sim_module *)library);
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
        SIM_ENTER(cuLibraryGetKernel);
        if (!kernel || !name)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(library, SIM_MODULE);
        return find_function((struct sim_module *)library, name, true,
                             (struct sim_function **)kernel);
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
        SIM_ENTER(cuLibraryGetModule);
        if (!module)
                return CUDA_ERROR_INVALID_VALUE;
        sim_handle_check(library, SIM_MODULE);
        *module = (CUmodule)library;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
        const struct sim_function *from = (struct sim_function *)kernel;

        SIM_ENTER(cuKernelGetFunction);
        if (!function || !kernel)
                return CUDA_ERROR_INVALID_VALUE;
        return find_function(from->module, from->kernel->name, false,
                             (struct sim_function **)function);
}
#endif

/* ---- what kernels are called and take; a launch takes both kinds of handles, these one ---- */

#if CUDA_VERSION >= 12030
static CUresult tell_name(const char **name, const struct sim_function *function, bool is_kernel)
{
        if (!name || !function)
                return CUDA_ERROR_INVALID_VALUE;
        if (function->is_kernel != is_kernel)
                return CUDA_ERROR_INVALID_HANDLE;
        *name = function->kernel->name;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetName(const char **called, CUfunction function)
{
        SIM_ENTER(cuFuncGetName);
        return tell_name(called, (struct sim_function *)function, false);
}

CUresult CUDAAPI cuKernelGetName(const char **called, CUkernel kernel)
{
        SIM_ENTER(cuKernelGetName);
        return tell_name(called, (struct sim_function *)kernel, true);
}
#endif

#if CUDA_VERSION >= 12040
static CUresult describe(const struct sim_function *function, bool is_kernel, size_t index,
                         size_t *offset, size_t *size)
{
        size_t bytes;

        if (!function || !offset)
                return CUDA_ERROR_INVALID_VALUE;
        if (function->is_kernel != is_kernel)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!sim_kernel_parameter(function->kernel, index, offset, &bytes))
                return CUDA_ERROR_INVALID_VALUE;
        if (size)
                *size = bytes;
        return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
        SIM_ENTER(cuFuncGetParamInfo);
        return describe((struct sim_function *)function, false, index, offset, size);
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
        SIM_ENTER(cuKernelGetParamInfo);
        return describe((struct sim_function *)kernel, true, index, offset, size);
}
#endif
