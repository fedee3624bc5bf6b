# SPDX-License-Identifier: Apache-2.0
# The .deb and the tar.gz of tools/dist.sh, by CPack. packaging/stage.cmake completes their contents.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};winnow;Unspecified;/")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/stage.cmake)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" system)
set(CPACK_PACKAGE_FILE_NAME winnow-${PROJECT_VERSION}-${system})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The winnow developers")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS /usr/${WINNOW_PRIVATE_LIBRARIES})  # within the package
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gnuplot-nox, bash-completion")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(file IN ITEMS conffiles postinst prerm postrm triggers)
  list(APPEND CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/debian/${file})
endforeach()
set(CPACK_WINNOW_PRIVATE_LIBRARIES ${WINNOW_PRIVATE_LIBRARIES})
set(CPACK_WINNOW_SOURCE ${PROJECT_SOURCE_DIR})
include(CPack)
