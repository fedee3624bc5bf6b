# SPDX-License-Identifier: Apache-2.0
# winnow_redis is what stores on Redis servers depend on. Without it such a store is refused with an error.
option(WINNOW_BUILD_REDIS "Build stores on Redis servers (hiredis, OpenSSL)" ON)
if(WINNOW_BUILD_REDIS)
  find_package(OpenSSL REQUIRED)
  find_path(HIREDIS_INCLUDE hiredis/hiredis.h REQUIRED)
  find_library(HIREDIS_LIBRARY hiredis REQUIRED)
  add_library(winnow_redis INTERFACE)
  target_include_directories(winnow_redis SYSTEM INTERFACE ${HIREDIS_INCLUDE})
  target_link_libraries(winnow_redis INTERFACE ${HIREDIS_LIBRARY} OpenSSL::SSL)
endif()
