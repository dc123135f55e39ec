/* A shared object that is no provider. */
int kernelpath_unrelated_symbol(void);
int kernelpath_unrelated_symbol(void) { return 0; }
