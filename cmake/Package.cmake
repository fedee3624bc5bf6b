# SPDX-License-Identifier: Apache-2.0
# The installed library: all modules in one shared object, so that a user's project links one library and sees only
# include/winnow.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(GenerateExportHeader)

# winnow_link_parts(TARGET): what the modules' objects need, but for stores on Redis servers.
function(winnow_link_parts target)
  target_link_libraries(${target} PRIVATE llama ggml::ggml ggml::ggml-base hwy::hwy hwy::hwy_contrib spdlog::spdlog xxHash::xxhash
    $<BUILD_INTERFACE:llama_common> $<$<BOOL:${WINNOW_HAS_ONEDNN}>:$<BUILD_INTERFACE:winnow_onednn>>)
endfunction()

set(objects)
foreach(module IN LISTS WINNOW_LIBRARY_MODULES)
  list(APPEND objects $<TARGET_OBJECTS:winnow_${module}>)
endforeach()
add_library(winnow_library SHARED ${objects})
add_library(winnow::winnow ALIAS winnow_library)
generate_export_header(winnow_library BASE_NAME winnow EXPORT_FILE_NAME ${PROJECT_BINARY_DIR}/include/winnow/export.h)
# As the version file below says: a minor version may change the interface.
set_target_properties(winnow_library PROPERTIES OUTPUT_NAME winnow EXPORT_NAME winnow VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(winnow_library PUBLIC cxx_std_20)
target_include_directories(winnow_library PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
winnow_link_parts(winnow_library)
target_link_libraries(winnow_library PRIVATE $<$<BOOL:${WINNOW_BUILD_REDIS}>:$<BUILD_INTERFACE:winnow_redis>>)

set(WINNOW_PRIVATE_LIBRARIES ${CMAKE_INSTALL_LIBDIR}/winnow)
winnow_install_ggml(${WINNOW_PRIVATE_LIBRARIES} Unspecified)
winnow_run_path(winnow_library ${CMAKE_INSTALL_LIBDIR} ${WINNOW_PRIVATE_LIBRARIES})
install(TARGETS winnow_library EXPORT winnow)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/winnow ${PROJECT_BINARY_DIR}/include/winnow DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING
        PATTERN "*.h")
install(EXPORT winnow NAMESPACE winnow:: FILE winnow-config.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/winnow)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/winnow-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/winnow-config-version.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/winnow)

if(WINNOW_BUILD_CLI)
  winnow_run_path(winnow_command ${CMAKE_INSTALL_BINDIR} ${WINNOW_PRIVATE_LIBRARIES})
  install(TARGETS winnow_command)
  install(FILES ${PROJECT_SOURCE_DIR}/completions/winnow.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME winnow)
  install(FILES ${PROJECT_SOURCE_DIR}/completions/winnow.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _winnow)
  install(FILES ${PROJECT_SOURCE_DIR}/completions/winnow.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  if(WINNOW_BUILD_SERVER)
    install(FILES ${PROJECT_SOURCE_DIR}/packaging/winnow.service DESTINATION lib/systemd/system)
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/docs/winnow.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  # In the same folders as in the source, so that links between them work.
  set(documents ${CMAKE_INSTALL_DATADIR}/doc/winnow)
  install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${documents})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${documents} PATTERN winnow.1 EXCLUDE)
endif()
