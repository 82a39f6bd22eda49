# What Doxygen reads of a header: what strait/ROOM/ declares is in the group ROOM (rooms.dox), and a defaulted operator==
# needs no comment. Line for line, so that warnings name the right ones.
FNR == 1 {
  parts = split(FILENAME, part, "/")
  for (i = parts - 1; i > 1 && part[i - 1] != "strait"; --i) {}
  room = part[i]
  printf "/** @file */ "
}
/^namespace strait[a-z:_]* \{$/ { $0 = $0 " /** @addtogroup " room " */ /** @{ */" }
/^\}  \/\/ namespace strait/ { $0 = "/** @} */ " $0 }
{
  sub(/bool operator==\([^)]*\) const = default;/, "")
  print
}
