/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_CUDA_11_H
#define SP_CUDA_11_H

/*
 * CUDA 11 -- what headers of 11.8 lack of the first 12
 *
 * A shim is built with the headers that a machine has, and serves the programs
 * that run there, whose runtime is often newer: it comes with the program. From
 * CUDA 12 on a runtime finds everything through cuGetProcAddress_v2, so a shim
 * without it would see nothing at all. These are the types of the functions of
 * 12.0 in our list; what they point to we only pass on.
 */

#include <cuda.h>

#if CUDA_VERSION < 12000

typedef int CUdriverProcAddressQueryResult; /* an enum there */
typedef struct CUlib_st *CUlibrary;
typedef int CUlibraryOption; /* an enum there */
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef CUresult(CUDAAPI *PFN_cuGetProcAddress_v12000)(const char *, void **, int, cuuint64_t,
                                                       CUdriverProcAddressQueryResult *);
typedef CUresult(CUDAAPI *PFN_cuCtxGetId_v12000)(CUcontext, unsigned long long *);
typedef CUresult(CUDAAPI *PFN_cuLibraryLoadData_v12000)(CUlibrary *, const void *, CUjit_option *,
                                                        void **, unsigned int, CUlibraryOption *,
                                                        void **, unsigned int);
typedef CUresult(CUDAAPI *PFN_cuLibraryLoadFromFile_v12000)(CUlibrary *, const char *,
                                                            CUjit_option *, void **, unsigned int,
                                                            CUlibraryOption *, void **,
                                                            unsigned int);
typedef CUresult(CUDAAPI *PFN_cuLibraryUnload_v12000)(CUlibrary);
typedef CUresult(CUDAAPI *PFN_cuGraphInstantiateWithParams_v12000)(CUgraphExec *, CUgraph,
                                                                   CUDA_GRAPH_INSTANTIATE_PARAMS *);
typedef PFN_cuGraphInstantiateWithParams_v12000 PFN_cuGraphInstantiateWithParams_v12000_ptsz;

/* What the shim exports is declared from the list; the others are declared by cuda.h. */
CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long *id);

#endif

#endif
