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

// fillDisk bounds the size of files of this process, appends until that is
// reached, and goes on when it no longer is.
func fillDisk(ctx context.Context, out io.Writer) error {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := Open(ctx, Options{Path: testFile})
	if err != nil {
		return err
	}
	seq := int64(0)
	for round := range uint64(3) {
		if err := bound(600_000 + 300_000*round); err != nil {
			return err
		}
		for {
			err = put(ctx, s, aCommit("r_a", seq+1, strings.Repeat("much ", 2000)))
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
			return fmt.Errorf("round %d: the run is at %d, %d were acknowledged: %w", round, r.Seq, seq, err)
		}
	}
	if err := bound(1 << 40); err != nil {
		return err
	}
	if err := put(ctx, s, aCommit("r_a", seq+1, "there is room again")); err != nil {
		return err
	}
	fmt.Fprintln(out, seq+1)
	return s.Close()
}

// bound bounds the size of files of this process.
func bound(size uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(size, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// fillTogether is fillDisk by several writers at once, each on a run of its own, who
// share transactions. It prints how far each has come.
func fillTogether(ctx context.Context, out io.Writer) error {
	const writers = 6
	signal.Ignore(syscall.SIGXFSZ)
	s, err := Open(ctx, Options{Path: testFile})
	if err != nil {
		return err
	}
	var seqs [writers]int64
	for round := range uint64(3) {
		if err := bound(600_000 + 300_000*round); err != nil {
			return err
		}
		var all sync.WaitGroup
		var errs [writers]error
		for i := range writers {
			all.Go(func() {
				for errs[i] == nil && seqs[i] < 2000 {
					c := aCommit(fmt.Sprint("r_", i), seqs[i]+1, strings.Repeat("much ", 300*(i+1)))
					if errs[i] = put(ctx, s, c); errs[i] == nil {
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
				return fmt.Errorf("round %d: run %d is at %d, %d were acknowledged", round, i, r.Seq, seqs[i])
			}
		}
	}
	for _, seq := range seqs {
		fmt.Fprintln(out, seq)
	}
	return s.Close()
}

// TestFullDiskTogether: of those who share a transaction on a full disk each is told
// what is so, and nothing that was acknowledged is lost.
func TestFullDiskTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := child(t, "fill it together", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{}
	for i, line := range strings.Fields(string(out)) {
		seq, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			t.Fatalf("the child says %q", out)
		}
		if seq > 0 { // who was never acknowledged has no run
			want[fmt.Sprint("r_", i)] = seq
		}
	}
	if len(want) == 0 {
		t.Fatalf("the child says %q", out)
	}
	wantConsistent(t, dir, want)
}

// TestFullDisk: a full disk is a clear error, loses nothing, and what comes
// behind it works.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := child(t, "fill the disk", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	var seq int64
	if _, err := fmt.Sscan(string(out), &seq); err != nil || seq < 5 {
		t.Fatalf("the child says %q", out)
	}
	wantConsistent(t, dir, map[string]int64{"r_a": seq})
}

// TestReadOnlyDirectory opens a store in a directory that may not be written,
// once with a store in it and once without. Root may write everywhere, so that
// the test goes down to another user.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{false, true} {
		t.Run(fmt.Sprint("a store is there: ", there), func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "guideway-read-only-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700); _ = os.RemoveAll(dir) })
			c := child(t, "open", dir)
			if there {
				if out, err := c.Output(); err != nil || string(out) != "opened\n" {
					t.Fatalf("%q, %v", out, err)
				}
				c = child(t, "open", dir)
			}
			if os.Getuid() == 0 {
				becomeNobody(t, dir, c.Path)
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

// becomeNobody gives all in a directory to another user, who can run the test
// from there.
func becomeNobody(t *testing.T, dir, self string) {
	t.Helper()
	// Not written by this process: another test may be starting a child of its
	// own, which would have the file open for writing.
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
