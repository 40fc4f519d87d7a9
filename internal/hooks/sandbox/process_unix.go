//go:build unix

package sandbox

// workDir is the working directory of workers, not that of the user.
const workDir = "/"
