package worktree

import "syscall"

func changeTime(stat *syscall.Stat_t) timespec {
	return timespec{int64(stat.Ctim.Sec), int64(stat.Ctim.Nsec)} //nolint:unconvert // the type depends on the architecture
}
