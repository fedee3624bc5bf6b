# SPDX-License-Identifier: Apache-2.0
# Completes the files installed into CPack's folder to a package. CPack runs this before it packs.
#
# A package built on Debian 12 also runs on Debian 13. Therefore it contains the libraries whose versions differ between
# the two, beside ggml, where the command and the library look first. Other libraries are dependencies of the .deb; the
# tar.gz contains them.
cmake_minimum_required(VERSION 3.25)
set(everywhere c m dl rt pthread stdc\\+\\+ gcc_s)
set(in_debian edit bsd md tinfo xxhash ssl crypto z gomp OpenCL)

if(CPACK_GENERATOR STREQUAL "DEB")
  set(prefix ${CPACK_TEMPORARY_DIRECTORY}/usr)
  list(JOIN everywhere "|" left)
  list(JOIN in_debian "|" more)
  string(APPEND left "|${more}")
else()
  set(prefix ${CPACK_TEMPORARY_DIRECTORY})
  list(JOIN everywhere "|" left)
endif()
set(libraries ${prefix}/${CPACK_WINNOW_PRIVATE_LIBRARIES})

file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${prefix}/bin/winnow RESOLVED_DEPENDENCIES_VAR found
     PRE_EXCLUDE_REGEXES "^lib(${left})\\.so" "^ld-linux" POST_EXCLUDE_REGEXES "/${CPACK_WINNOW_PRIVATE_LIBRARIES}/[^/]*$")
foreach(file IN LISTS found)
  get_filename_component(name ${file} NAME)
  file(REAL_PATH ${file} real)
  configure_file(${real} ${libraries}/${name} COPYONLY)
endforeach()

# The terms of third-party code must be copied with it.
set(documents ${prefix}/share/doc/winnow)
file(MAKE_DIRECTORY ${documents})
execute_process(COMMAND ${CPACK_WINNOW_SOURCE}/packaging/notices.sh ${found} OUTPUT_FILE ${documents}/copyright COMMAND_ERROR_IS_FATAL ANY)

if(CPACK_GENERATOR STREQUAL "DEB")
  configure_file(${CPACK_WINNOW_SOURCE}/packaging/default ${CPACK_TEMPORARY_DIRECTORY}/etc/default/winnow COPYONLY
                 FILE_PERMISSIONS OWNER_READ OWNER_WRITE)
endif()
