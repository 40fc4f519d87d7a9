//go:build !unix

package gitrun

import "os/exec"

func boundedCommand(path string, args []string) (name string, all []string) { return path, args }

func boundMemory(*exec.Cmd) error { return nil }
