//go:build !unix

package setup

import "io/fs"

// accessOf returns true: this system has no permission bits to read.
func accessOf(string, bool) (readable, writable bool) { return true, true }

func describeOwner(fs.DirEntry) (text string, foreign bool) { return "", false }

func accessFix([]string, bool) string { return "make the files readable and writable for this user" }
