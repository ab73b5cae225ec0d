//===- PythonSite.h - The line of Python that calls -------------*- C++ -*-===//

#ifndef ATTN_TOOLS_CUDA_DRIVER_PYTHONSITE_H
#define ATTN_TOOLS_CUDA_DRIVER_PYTHONSITE_H

#include <string>

namespace cuda {

/// Returns "file:line" of the calling thread's nearest frame of Python that is
/// not of an installed package; empty where no Python runs in it. Takes
/// Python's lock: not to be called under one of the stand-in's.
std::string findPythonSite();

} // namespace cuda

#endif // ATTN_TOOLS_CUDA_DRIVER_PYTHONSITE_H
