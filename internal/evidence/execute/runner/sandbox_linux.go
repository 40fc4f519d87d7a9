package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// minLandlock is the first version of Landlock that limits the truncation of files.
const minLandlock = 3

// Versions of Landlock that limit more.
const (
	landlockNetwork = 4
	landlockScopes  = 6
)

// fileAccess are the rights that a directory's files and subdirectories can have; the rights
// of directories have no meaning for a file.
const (
	fileAccess = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	dirAccess  = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
)

// landlockVersion returns the version of Landlock in the kernel, or 0.
var landlockVersion = sync.OnceValue(func() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
})

// CheckSandbox returns an error if a command cannot be limited on this system.
func CheckSandbox(network bool) error {
	switch version := landlockVersion(); {
	case version == 0:
		return errors.New("the kernel has no Landlock, or it is disabled")
	case version < minLandlock:
		return fmt.Errorf("the kernel has version %d of Landlock, which does not limit the truncation of files", version)
	case !network && version < landlockNetwork && !canIsolateNetwork():
		return fmt.Errorf("the kernel has version %d of Landlock and no user namespaces, so %w", version, ErrNetwork)
	}
	return nil
}

// canIsolateNetwork reports whether a process can have its own network, in which only its
// own loopback interface exists.
var canIsolateNetwork = sync.OnceValue(func() bool {
	attr := &syscall.SysProcAttr{}
	isolateNetwork(attr)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer null.Close()
	// The program does not matter: the namespaces are created before it starts.
	process, err := os.StartProcess("/proc/self/exe", []string{"guideway", "--version"}, &os.ProcAttr{Env: []string{}, Files: []*os.File{null, null, null}, Sys: attr})
	if err != nil {
		return false
	}
	_ = process.Kill()
	_, _ = process.Wait()
	return true
})

// isolateNetwork sets the attributes of a process that has its own network and the right to
// configure it.
func isolateNetwork(attr *syscall.SysProcAttr) {
	attr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
}

// apply limits the calling thread and the processes that it starts.
func (s *Sandbox) apply() error {
	if err := CheckSandbox(s.Network); err != nil {
		return err
	}
	if s.Isolated {
		if err := enableLoopback(); err != nil {
			return fmt.Errorf("enable the loopback interface: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: fileAccess | dirAccess}
	if version := landlockVersion(); version >= landlockScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	if !s.Network && !s.Isolated {
		if version := landlockVersion(); version < landlockNetwork {
			return fmt.Errorf("the kernel has version %d of Landlock and the command has no network of its own, so %w", version, ErrNetwork)
		}
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // G103: the call takes a pointer
	if errno != 0 {
		return fmt.Errorf("create the rules of the sandbox: %w", errno)
	}
	defer func() { _ = unix.Close(int(rules)) }()
	for _, name := range s.Writable {
		if err := allowWrites(int(rules), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("allow writes to %s: %w", name, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); errno != 0 {
		return fmt.Errorf("enter the sandbox: %w", errno)
	}
	return nil
}

// allowWrites allows writes to a file, or to everything below a directory.
func allowWrites(rules int, name string) error {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: fileAccess, Parent_fd: int32(fd)}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		rule.Allowed_access |= dirAccess
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // G103: the call takes a pointer
	if errno != 0 {
		return errno
	}
	return nil
}

// enableLoopback sets the loopback interface of a new network up.
func enableLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}
