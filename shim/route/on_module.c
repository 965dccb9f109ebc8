/* SPDX-License-Identifier: Apache-2.0 */

/* On module -- kernels that end, whose handles may be given out again */

#include "route/route.h"
#include "track/signature.h"

CUresult CUDAAPI sp_on_cuModuleUnload(CUmodule module)
{
        sp_signature_forget();
        return sp_driver.cuModuleUnload(module);
}

CUresult CUDAAPI sp_on_cuLibraryUnload(CUlibrary library)
{
        sp_signature_forget();
        return sp_driver.cuLibraryUnload(library);
}
