# Run by `cmake --install`: copies strait/NAME.h of the NAMEs in STRAIT_PUBLIC, and the headers of strait that these reach
# through their #include lines, from STRAIT_SOURCE into STRAIT_INCLUDE. So does strait/transport/process_group.h, which no
# NAME.h includes: it brings c10d's headers.

cmake_minimum_required(VERSION 3.25)

list(TRANSFORM STRAIT_PUBLIC REPLACE "(.+)" "strait/\\1.h" OUTPUT_VARIABLE waiting)
list(APPEND waiting strait/transport/process_group.h)
set(headers "")
while(waiting)
  list(POP_FRONT waiting header)
  if(header IN_LIST headers)
    continue()
  endif()
  list(APPEND headers ${header})
  file(STRINGS ${STRAIT_SOURCE}/${header} lines REGEX "^ *# *include \"strait/")
  foreach(line ${lines})
    string(REGEX REPLACE "^[^\"]*\"([^\"]*)\".*$" "\\1" reached "${line}")
    list(APPEND waiting ${reached})
  endforeach()
endwhile()
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  file(INSTALL ${STRAIT_SOURCE}/${header} DESTINATION ${STRAIT_INCLUDE}/${folder})
endforeach()
