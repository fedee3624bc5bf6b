# SPDX-License-Identifier: Apache-2.0
# `winnow serve` needs Boost's Asio and Beast (headers only). Without them the command is built without it.
find_package(Boost 1.81 QUIET)
option(WINNOW_BUILD_SERVER "Build winnow serve, which needs Boost 1.81" ${Boost_FOUND})
if(WINNOW_BUILD_SERVER)
  find_package(Boost 1.81 REQUIRED)
  message(STATUS "Boost: ${Boost_VERSION_STRING}")
  add_subdirectory(src/server)
else()
  message(STATUS "No winnow serve: it needs Boost 1.81")
  add_library(winnow_server INTERFACE)  # so that the command need not know
endif()
