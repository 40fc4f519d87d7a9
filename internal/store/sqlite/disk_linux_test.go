package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway"
)

// fillDisk limits the size of the files of this process, appends until the limit is
// reached, and continues after the limit is lifted.
func fillDisk(ctx context.Context, out io.Writer) error {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := Open(ctx, Options{Path: testFile})
	if err != nil {
		return err
	}
	seq := int64(0)
	for round := range uint64(3) {
		if err := limitFileSize(600_000 + 300_000*round); err != nil {
			return err
		}
		for {
			err = putCommit(ctx, s, newTestCommit("r_a", seq+1, strings.Repeat("much ", 2000)))
			if err != nil {
				break
			}
			seq++
			if seq > 2000 {
				return errors.New("the disk is never full")
			}
		}
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), "isk") {
			return fmt.Errorf("round %d: no clear error: %w, %s", round, err, guideway.ErrorFix(err))
		}
		if r, err := s.Run(ctx, "r_a"); err != nil || r.Seq != seq {
			return fmt.Errorf("round %d: the run has %d events, %d were acknowledged: %w", round, r.Seq, seq, err)
		}
	}
	if err := limitFileSize(1 << 40); err != nil {
		return err
	}
	if err := putCommit(ctx, s, newTestCommit("r_a", seq+1, "the limit is lifted")); err != nil {
		return err
	}
	fmt.Fprintln(out, seq+1)
	return s.Close()
}

// limitFileSize limits the size of the files of this process.
func limitFileSize(size uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(size, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// fillDiskShared does the same as fillDisk with several writers at the same time, each with
// its own run, whose commits share transactions. It prints the last event of each writer.
func fillDiskShared(ctx context.Context, out io.Writer) error {
	const writers = 6
	signal.Ignore(syscall.SIGXFSZ)
	s, err := Open(ctx, Options{Path: testFile})
	if err != nil {
		return err
	}
	var seqs [writers]int64
	for round := range uint64(3) {
		if err := limitFileSize(600_000 + 300_000*round); err != nil {
			return err
		}
		var all sync.WaitGroup
		var errs [writers]error
		for i := range writers {
			all.Go(func() {
				for errs[i] == nil && seqs[i] < 2000 {
					c := newTestCommit(fmt.Sprint("r_", i), seqs[i]+1, strings.Repeat("much ", 300*(i+1)))
					if errs[i] = putCommit(ctx, s, c); errs[i] == nil {
						seqs[i]++
					}
				}
			})
		}
		all.Wait()
		for i, err := range errs {
			if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), "isk") {
				return fmt.Errorf("round %d, writer %d: no clear error: %w", round, i, err)
			}
			if r, _ := s.Run(ctx, fmt.Sprint("r_", i)); r.Seq != seqs[i] {
				return fmt.Errorf("round %d: run %d has %d events, %d were acknowledged", round, i, r.Seq, seqs[i])
			}
		}
	}
	for _, seq := range seqs {
		fmt.Fprintln(out, seq)
	}
	return s.Close()
}

// TestFullDiskShared checks that commits that share a transaction on a full disk get
// correct results, and that no acknowledged event is lost.
func TestFullDiskShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := childCommand(t, "fill the disk shared", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{}
	for i, line := range strings.Fields(string(out)) {
		seq, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatalf("the child printed %q", out)
		}
		if seq > 0 { // a writer without an acknowledged commit has no run
			want[fmt.Sprint("r_", i)] = seq
		}
	}
	if len(want) == 0 {
		t.Fatalf("the child printed %q", out)
	}
	checkConsistent(t, dir, want)
}

// TestFullDisk checks that a full disk causes a clear error and no loss, and that the store
// works again after space is freed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := childCommand(t, "fill the disk", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	var seq int64
	if _, err := fmt.Sscan(string(out), &seq); err != nil || seq < 5 {
		t.Fatalf("the child printed %q", out)
	}
	checkConsistent(t, dir, map[string]int64{"r_a": seq})
}

// TestReadOnlyDirectory checks the errors for a read-only directory, with and without an
// existing store. Root can write everywhere, so the test runs as another user.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{false, true} {
		t.Run(fmt.Sprint("existing store: ", there), func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "guideway-read-only-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700); _ = os.RemoveAll(dir) })
			c := childCommand(t, "open", dir)
			if there {
				if out, err := c.Output(); err != nil || string(out) != "opened\n" {
					t.Fatalf("%q, %v", out, err)
				}
				c = childCommand(t, "open", dir)
			}
			if os.Getuid() == 0 {
				dropPrivileges(t, dir, c.Path)
				c.Path = filepath.Join(dir, "child")
				c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			if err := os.Chmod(dir, 0o555); err != nil {
				t.Fatal(err)
			}
			out, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(out), string(guideway.CodeUnavailable)+" | ") || !strings.Contains(string(out), "writable for this user") {
				t.Errorf("no clear error: %s", out)
			}
		})
	}
}

// dropPrivileges gives a directory and its content to another user, who can run the test
// there.
func dropPrivileges(t *testing.T, dir, self string) {
	t.Helper()
	// A separate process copies the binary: otherwise a child that another test starts at
	// the same time would inherit the file while it is open for writing.
	if out, err := exec.CommandContext(t.Context(), "cp", self, filepath.Join(dir, "child")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.Chown(filepath.Join(dir, entry.Name()), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
}
