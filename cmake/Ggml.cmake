# SPDX-License-Identifier: Apache-2.0
# ggml and libllama are installed beside winnow, so that an installation does not depend on the build folder. System
# libraries, which the loader finds by itself, are not installed.
get_filename_component(WINNOW_GGML_FOLDER "${llama_LIBRARY}" DIRECTORY)
if(llama_LIBRARY MATCHES "\\.a$" OR WINNOW_GGML_FOLDER MATCHES "^/(usr|lib|lib64)(/|$)")
  set(WINNOW_CARRIES_GGML OFF)
else()
  set(WINNOW_CARRIES_GGML ON)
endif()

# llama.cpp's library of chat templates, tool calls and schemas, which has no CMake package.
find_library(LLAMA_COMMON_LIBRARY llama-common HINTS ${WINNOW_GGML_FOLDER} REQUIRED)
find_path(LLAMA_COMMON_INCLUDE chat.h PATH_SUFFIXES llama-common HINTS ${WINNOW_GGML_FOLDER}/../include REQUIRED)
add_library(llama_common INTERFACE)
target_include_directories(llama_common SYSTEM INTERFACE ${LLAMA_COMMON_INCLUDE})
target_link_libraries(llama_common INTERFACE ${LLAMA_COMMON_LIBRARY} llama)
find_path(LLAMA_TEMPLATES Qwen-Qwen3-0.6B.jinja PATH_SUFFIXES llama-common/templates HINTS ${WINNOW_GGML_FOLDER}/../share)  # for tests

# winnow_install_ggml(FOLDER COMPONENT): installs each library under its SONAME, without links, which a wheel cannot
# have; and under glibc-hwcaps/ the variants for newer processors, if `get-deps.sh portable` built them. The loader picks
# the best.
function(winnow_install_ggml folder component)
  if(NOT WINNOW_CARRIES_GGML)
    return()
  endif()
  file(GLOB libraries ${WINNOW_GGML_FOLDER}/libggml*.so.* ${WINNOW_GGML_FOLDER}/libllama.so.*
       ${WINNOW_GGML_FOLDER}/libllama-common.so.*)
  list(FILTER libraries INCLUDE REGEX "\\.so\\.[0-9]+$")
  foreach(library IN LISTS libraries)
    get_filename_component(name ${library} NAME)
    file(REAL_PATH ${library} file)
    install(PROGRAMS ${file} DESTINATION ${folder} RENAME ${name} COMPONENT ${component})
  endforeach()
  install(PROGRAMS ${WINNOW_GGML_FOLDER}/libggml-cuda.so ${WINNOW_GGML_FOLDER}/libggml-vulkan.so DESTINATION ${folder} COMPONENT ${component} OPTIONAL)
  if(EXISTS ${WINNOW_GGML_FOLDER}/glibc-hwcaps)
    install(DIRECTORY ${WINNOW_GGML_FOLDER}/glibc-hwcaps DESTINATION ${folder} COMPONENT ${component} USE_SOURCE_PERMISSIONS)
  endif()
endfunction()

# winnow_run_path(TARGET FOLDER LIBRARIES): sets the run path with which TARGET, installed in FOLDER, finds ggml in
# LIBRARIES. Both folders are relative to the prefix.
function(winnow_run_path target folder libraries)
  if(WINNOW_CARRIES_GGML)
    file(RELATIVE_PATH path /${folder} /${libraries})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${path};${CMAKE_INSTALL_RPATH}")
  else()
    set_target_properties(${target} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
endfunction()
