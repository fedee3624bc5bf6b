# SPDX-License-Identifier: Apache-2.0
# winnow_module(NAME SOURCES... KERNELS... DEPS... PRIVATE_DEPS...): one static library for one folder of src/. KERNELS are
# sources that are compiled for several kinds of processors. A folder may include the headers of its DEPS and of their
# DEPS in turn, which tests/includes checks. A shared library shows only names marked with WINNOW_EXPORT.
function(winnow_module name)
  cmake_parse_arguments(M "" "" "SOURCES;KERNELS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(winnow_${name} STATIC ${M_SOURCES} ${M_KERNELS})
  target_include_directories(winnow_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include
                             ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(winnow_${name} PUBLIC ${M_DEPS} PRIVATE ${M_PRIVATE_DEPS} winnow_flags)
  winnow_jumbo(winnow_${name} ${M_KERNELS})
endfunction()

# winnow_cold(TARGET): has no hot code, so it is compiled with less optimisation, in two thirds of the time.
function(winnow_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1> $<$<CONFIG:Debug>:-O0>)
endfunction()

# winnow_cold_in_debug(TARGET): a library that tests under sanitizers do not spend their time in.
function(winnow_cold_in_debug target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0>)
endfunction()

# winnow_unoptimised(TARGET): a program whose time is spent in the library, compiled in two thirds of winnow_cold's time.
function(winnow_unoptimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release,Debug>:-O0>)
endfunction()
