//go:build darwin || freebsd || netbsd

package worktree

import "syscall"

func changeTime(stat *syscall.Stat_t) timespec {
	return timespec{int64(stat.Ctimespec.Sec), int64(stat.Ctimespec.Nsec)} //nolint:unconvert // the type depends on the architecture
}
