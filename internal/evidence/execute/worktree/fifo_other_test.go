//go:build !unix

package worktree_test

import "errors"

func mkfifo(string) error { return errors.New("the system has no named pipes") }
