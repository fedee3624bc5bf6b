# SPDX-License-Identifier: Apache-2.0
# With oneDNN, long prompts are multiplied in bf16; without it ggml does everything. It must use libgomp's threads or none,
# since winnow keeps each call on its thread through libgomp. (Debian's CMake package needs OpenCL, which winnow does not.)
include(CheckCXXSourceCompiles)
option(WINNOW_ONEDNN "Use oneDNN where it is found" ON)
find_library(DNNL_LIBRARY dnnl)
find_path(DNNL_INCLUDE dnnl.hpp)
set(WINNOW_HAS_ONEDNN OFF)
if(WINNOW_ONEDNN AND DNNL_LIBRARY AND DNNL_INCLUDE)
  add_library(winnow_onednn INTERFACE)
  target_include_directories(winnow_onednn SYSTEM INTERFACE ${DNNL_INCLUDE})
  target_link_libraries(winnow_onednn INTERFACE ${DNNL_LIBRARY} gomp)
  set(CMAKE_REQUIRED_INCLUDES ${DNNL_INCLUDE})
  set(CMAKE_REQUIRED_LIBRARIES ${DNNL_LIBRARY} gomp)
  check_cxx_source_compiles("
    #include <dnnl.hpp>
    extern \"C\" void omp_set_num_threads(int);
    #if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_SEQ
    #error other threads
    #endif
    int main() { omp_set_num_threads(1); return dnnl::version()->major < 2; }" WINNOW_ONEDNN_ON_GOMP)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(WINNOW_ONEDNN_ON_GOMP)
    set(WINNOW_HAS_ONEDNN ON)
  endif()
endif()
if(WINNOW_HAS_ONEDNN)
  message(STATUS "oneDNN: ${DNNL_LIBRARY}")
else()
  message(STATUS "No oneDNN: ggml multiplies long prompts, too")
endif()
