# Helpers that every folder of the project uses. A library registers itself in
# global properties, so that tools, the install set and the C API need no edit
# when one is added.

include_guard(GLOBAL)

# One precompiled header for all code that includes MLIR. Its owner is an empty
# object library; the others reuse it.
function(attn_setup_pch)
  if(NOT ATTN_ENABLE_PCH)
    return()
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/pch/AttnPCH.cpp "")
  add_library(AttnPCH OBJECT ${CMAKE_BINARY_DIR}/pch/AttnPCH.cpp)
  target_precompile_headers(AttnPCH PRIVATE
    ${CMAKE_CURRENT_SOURCE_DIR}/cmake/AttnPCH.h)
  # ccache refuses precompiled headers with time stamps inside.
  target_compile_options(AttnPCH PRIVATE -Xclang -fno-pch-timestamp)
endfunction()

# The same for unit tests of what needs no MLIR: googletest takes half of their
# time.
function(attn_setup_test_pch)
  if(NOT ATTN_ENABLE_PCH)
    return()
  endif()
  add_library(AttnTestPCH OBJECT ${CMAKE_BINARY_DIR}/pch/AttnPCH.cpp)
  target_link_libraries(AttnTestPCH PRIVATE GTest::gtest GTest::gmock)
  target_precompile_headers(AttnTestPCH PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  target_compile_options(AttnTestPCH PRIVATE -Xclang -fno-pch-timestamp)
endfunction()

# attn_use_pch(<target> [<owner>])
function(attn_use_pch target)
  if(ATTN_ENABLE_PCH)
    set(owner AttnPCH ${ARGN})
    list(GET owner -1 owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
    target_compile_options(${target} PRIVATE -Xclang -fno-pch-timestamp)
  endif()
endfunction()

# Compiles several files as one: what they include is read, and what it makes of
# templates is compiled, once. Files of different folders stay apart, as they
# have helpers of the same names.
function(attn_use_unity target)
  if(NOT ATTN_UNITY_FILES GREATER 1)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS ARGN)
    get_filename_component(folder "${source}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" folder)
    math(EXPR number "0${count_${folder}} / ${ATTN_UNITY_FILES}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP "${folder}${number}")
    math(EXPR count_${folder} "0${count_${folder}} + 1")
  endforeach()
endfunction()

# The target AttnStaticMLIR: MLIR and LLVM as archives, for tools that start
# often. Not defined where ATTN_STATIC_TOOLS is off or an archive is missing.
function(attn_setup_static_mlir)
  if(NOT ATTN_STATIC_TOOLS)
    return()
  endif()
  # libLLVM.so brings these along, under the name of their interface.
  find_library(ATTN_ZSTD NAMES zstd libzstd.so.1)
  find_package(ZLIB)
  # Archives name each other in circles, which lld alone resolves in any order.
  if(NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld=lld" OR NOT ATTN_ZSTD OR NOT ZLIB_FOUND)
    message(STATUS "Tools share libMLIR.so: archives need lld, zlib and zstd")
    return()
  endif()
  get_property(mlir_libs GLOBAL PROPERTY MLIR_ALL_LIBS)
  set(archives)
  foreach(lib IN LISTS mlir_libs LLVM_AVAILABLE_LIBS)
    if(NOT TARGET ${lib})
      continue()
    endif()
    get_target_property(type ${lib} TYPE)
    # The file, not the target, which would bring libLLVM.so along.
    get_target_property(file ${lib} LOCATION)
    if(type STREQUAL "STATIC_LIBRARY" AND EXISTS "${file}")
      list(APPEND archives ${file})
    endif()
  endforeach()
  if(NOT archives MATCHES "MLIRIR\\." OR NOT archives MATCHES "LLVMNVPTXCodeGen\\.")
    message(STATUS "Tools share libMLIR.so: MLIR or LLVM has no archives")
    return()
  endif()
  add_library(AttnStaticMLIR INTERFACE)
  set_target_properties(AttnStaticMLIR PROPERTIES ATTN_ARCHIVES "${archives}")
  target_link_libraries(AttnStaticMLIR INTERFACE
    ${archives} ZLIB::ZLIB ${ATTN_ZSTD} ${CMAKE_DL_LIBS})
  target_link_options(AttnStaticMLIR INTERFACE
    -no-pie -static-libstdc++ -static-libgcc LINKER:--gc-sections)
endfunction()

# add_attn_library(<name> <sources>...
#   [SUPPORT_ONLY]       uses LLVM Support only: no MLIR, no PCH
#   [TEST_ONLY]          neither installed nor linked into shipped tools
#   [TOOLS_ONLY]         linked into tools alone, and not installed
#   [LINK_LIBS <libs>]   other Attn libraries, and archives of MLIR that
#                        libMLIR.so does not have
#   [DEPENDS <targets>]  tablegen targets
# )
# Brings libMLIR.so (and libLLVM.so) to whoever links it, or nothing to a target
# whose property ATTN_STATIC_MLIR says that it has their archives: never both.
function(add_attn_library name)
  cmake_parse_arguments(ARG "SUPPORT_ONLY;TEST_ONLY;TOOLS_ONLY" "" "LINK_LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  attn_use_unity(${name} ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${name} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set(is_shared "$<NOT:$<BOOL:$<TARGET_PROPERTY:ATTN_STATIC_MLIR>>>")
  if(ARG_SUPPORT_ONLY)
    target_link_libraries(${name} PUBLIC $<${is_shared}:LLVM>)
  else()
    target_link_libraries(${name} PUBLIC $<${is_shared}:MLIR> $<${is_shared}:LLVM>)
    attn_use_pch(${name})
    get_property(incgen GLOBAL PROPERTY ATTN_INCGEN_TARGETS)
    if(incgen)
      add_dependencies(${name} ${incgen})
    endif()
  endif()
  foreach(lib IN LISTS ARG_LINK_LIBS)
    if(lib MATCHES "^Attn")
      target_link_libraries(${name} PUBLIC ${lib})
    else()
      # An archive of MLIR brings libLLVM.so along.
      target_link_libraries(${name} PUBLIC $<${is_shared}:${lib}>)
    endif()
  endforeach()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(ARG_TEST_ONLY)
    set_property(GLOBAL APPEND PROPERTY ATTN_TEST_LIBS ${name})
  elseif(NOT ARG_TOOLS_ONLY)
    set_property(GLOBAL APPEND PROPERTY ATTN_LIBS ${name})
  endif()
endfunction()

# add_attn_tool(<name> <sources>... [SUPPORT_ONLY] [TEST_ONLY] [STATIC_MLIR]
#   [PYTHON] [LINK_LIBS <libs>])
# TEST_ONLY tools are not installed; PYTHON tools are commands that the Python
# package brings as well. STATIC_MLIR tools link MLIR's archives where
# there are any: they start in a fifth of the time, and cannot load plugins.
function(add_attn_tool name)
  cmake_parse_arguments(ARG "SUPPORT_ONLY;TEST_ONLY;STATIC_MLIR;PYTHON" "" "LINK_LIBS"
    ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  if(NOT TARGET AttnStaticMLIR)
    set(ARG_STATIC_MLIR OFF)
  endif()
  # LLVM's own folder is not on the loader's path; installed tools name it too.
  set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS})
  if(ARG_STATIC_MLIR)
    set_target_properties(${name} PROPERTIES ATTN_STATIC_MLIR ON)
    target_link_libraries(${name} PRIVATE AttnStaticMLIR)
  elseif(NOT ARG_SUPPORT_ONLY)
    target_link_libraries(${name} PRIVATE MLIR LLVM)
  endif()
  if(NOT ARG_SUPPORT_ONLY)
    attn_use_pch(${name})
    get_property(incgen GLOBAL PROPERTY ATTN_INCGEN_TARGETS)
    if(incgen)
      add_dependencies(${name} ${incgen})
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY ATTN_TOOLS ${name})
  if(NOT ARG_TEST_ONLY)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  if(ARG_PYTHON AND SKBUILD_SCRIPTS_DIR)
    install(TARGETS ${name} RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR}
      COMPONENT python EXCLUDE_FROM_ALL)
  endif()
endfunction()

# add_attn_plugin(<name> <sources>... [LINK_LIBS <libs>])
# A shared library that a running program loads: lib/<name>.so.
function(add_attn_plugin name)
  cmake_parse_arguments(ARG "" "" "LINK_LIBS" ${ARGN})
  add_library(${name} MODULE ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES
    PREFIX "" INSTALL_RPATH_USE_LINK_PATH ON)
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} MLIR LLVM)
  attn_use_pch(${name})
  get_property(incgen GLOBAL PROPERTY ATTN_INCGEN_TARGETS)
  if(incgen)
    add_dependencies(${name} ${incgen})
  endif()
  set_property(GLOBAL APPEND PROPERTY ATTN_TOOLS ${name})
  install(TARGETS ${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# attn_tablegen_target(<name>): closes a group of mlir_tablegen calls.
function(attn_tablegen_target name)
  add_public_tablegen_target(${name})
  set_property(GLOBAL APPEND PROPERTY ATTN_INCGEN_TARGETS ${name})
endfunction()

# add_attn_unittest(<name> <sources>... [SUPPORT_ONLY] [APART <sources>...]
#   [LINK_LIBS <libs>])
# googletest binary, run by lit. Sources behind APART are compiled alone.
function(add_attn_unittest name)
  cmake_parse_arguments(ARG "SUPPORT_ONLY" "" "APART;LINK_LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS} ${ARG_APART})
  attn_use_unity(${name} ${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK_LIBS} GTest::gtest_main GTest::gmock)
  if(ARG_SUPPORT_ONLY)
    attn_use_pch(${name} AttnTestPCH)
  else()
    target_link_libraries(${name} PRIVATE MLIR LLVM)
    attn_use_pch(${name})
    get_property(incgen GLOBAL PROPERTY ATTN_INCGEN_TARGETS)
    if(incgen)
      add_dependencies(${name} ${incgen})
    endif()
  endif()
  add_dependencies(AttnUnitTests ${name})
endfunction()

# Installs headers, libraries and tools, and exports the CMake package Attn for
# the build tree and the install tree.
function(attn_install_package)
  include(CMakePackageConfigHelpers)
  get_property(libs GLOBAL PROPERTY ATTN_LIBS)
  if(NOT libs)
    return()
  endif()
  install(TARGETS ${libs} EXPORT AttnTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${PROJECT_BINARY_DIR}/include/
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.h.inc" PATTERN "*.td" PATTERN "*.def"
    PATTERN "CMakeFiles" EXCLUDE)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Attn)
  install(EXPORT AttnTargets NAMESPACE Attn:: DESTINATION ${package_dir})
  export(EXPORT AttnTargets NAMESPACE Attn::
    FILE ${PROJECT_BINARY_DIR}/lib/cmake/Attn/AttnTargets.cmake)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/AttnConfig.cmake.in
    ${PROJECT_BINARY_DIR}/lib/cmake/Attn/AttnConfig.cmake
    INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/lib/cmake/Attn/AttnConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES
    ${PROJECT_BINARY_DIR}/lib/cmake/Attn/AttnConfig.cmake
    ${PROJECT_BINARY_DIR}/lib/cmake/Attn/AttnConfigVersion.cmake
    DESTINATION ${package_dir})
endfunction()
