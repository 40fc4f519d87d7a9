package sandbox

// workDir is the working directory of workers; if empty, it is that of the pool.
const workDir = ""
