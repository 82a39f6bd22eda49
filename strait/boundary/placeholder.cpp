namespace strait {}
