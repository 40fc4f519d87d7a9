package server

import "os"

// lives says whether there is a process of this number.
func lives(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
