package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

// childDir is an environment variable with a directory. If it is set, the test binary
// writes versions into the directory until it is killed.
const childDir = "GUIDEWAY_TEST_MIRROR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		writeForever(dir)
	}
	goleak.VerifyTestMain(m)
}

func checkError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// numberedFetcher returns versions of many files that contain the version's number.
type numberedFetcher struct {
	mu      sync.Mutex
	n       int
	fail    error
	fetches int
	// same makes the content independent of the number.
	same bool
	// pause is the duration of a fetch.
	pause time.Duration
}

const filesOfVersion = 20

func (f *numberedFetcher) setVersion(n int, fail error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n, f.fail = n, fail
}

func (f *numberedFetcher) Fetch(ctx context.Context, have *mirror.Previous, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fetches++
	if err := ctxsleep.For(ctx, f.pause); err != nil {
		return mirror.Fetched{}, err
	}
	if f.fail != nil {
		return mirror.Fetched{}, f.fail
	}
	got := mirror.Fetched{Revision: strconv.Itoa(f.n)}
	if have != nil && have.Revision == got.Revision {
		return got, nil
	}
	to, err := stage()
	if err != nil {
		return got, err
	}
	content := got.Revision
	if f.same {
		content = "same"
	}
	for i := range filesOfVersion {
		if err := to.Add(fmt.Sprintf("dir/%02d.json", i), 100, strings.NewReader(content)); err != nil {
			return got, err
		}
	}
	return got, nil
}

func newSource(dir string, f mirror.Fetcher) *mirror.Source {
	return mirror.New(catalog.SourceInfo{Name: "x", Location: "https://x"}, mirror.Options{
		Dir: dir, Origin: "o", Fetcher: f, Interval: time.Second, Poll: 10 * time.Millisecond,
	})
}

// readWhole reads all documents, and fails if they belong to different versions.
func readWhole(t testing.TB, s *mirror.Source) string {
	t.Helper()
	documents, _, err := s.Documents(context.Background())
	checkError(t, err)
	content := ""
	for i, d := range documents {
		file, err := d.Open(context.Background())
		checkError(t, err)
		data, err := io.ReadAll(file)
		checkError(t, errors.Join(err, file.Close()))
		if i > 0 && string(data) != content {
			t.Fatalf("%s has version %q, others have %q", d.Name, data, content)
		}
		content = string(data)
	}
	if len(documents) != filesOfVersion {
		t.Fatalf("%d documents of version %q", len(documents), content)
	}
	return content
}

// Reads during updates see one version, from the updating source and from a second source
// of the same copy.
func TestReadersSeeOneVersion(t *testing.T) {
	t.Parallel()
	dir, f := t.TempDir(), &numberedFetcher{}
	writer, other := newSource(dir, f), newSource(dir, f)
	_, err := writer.Sync(t.Context())
	checkError(t, err)
	var done atomic.Bool
	var readers sync.WaitGroup
	for _, s := range []*mirror.Source{writer, other} {
		readers.Go(func() {
			for !done.Load() {
				readWhole(t, s)
			}
		})
	}
	for n := 1; n <= 30; n++ {
		f.setVersion(n, nil)
		_, err := writer.Sync(t.Context())
		checkError(t, err)
	}
	done.Store(true)
	readers.Wait()
	if got := readWhole(t, other); got != "30" {
		t.Errorf("the last version is %s", got)
	}
}

// Eight sources of one copy that synchronize at the same time make one fetch: the others use
// its result.
func TestConcurrentSyncs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &numberedFetcher{n: 1, pause: time.Second}
		var syncs sync.WaitGroup
		for range 8 {
			s := newSource(dir, f)
			syncs.Go(func() {
				if _, err := s.Sync(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		syncs.Wait()
		if f.fetches != 1 {
			t.Errorf("%d fetches", f.fetches)
		}
		readWhole(t, newSource(dir, f))
	})
}

// Failed attempts are reported and delay the next one.
func TestFailures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := &numberedFetcher{fail: errors.New("no route\x1b[31m to host")}
	s := mirror.New(catalog.SourceInfo{Name: "x"}, mirror.Options{Dir: t.TempDir(), Origin: "o", Fetcher: f, Interval: time.Minute, Now: func() time.Time { return now }})
	var pauses []time.Duration
	for range 12 {
		if !s.Due() {
			t.Fatal("no attempt is due")
		}
		now = now.Add(time.Nanosecond)
		if _, err := s.Sync(t.Context()); err == nil {
			t.Fatal("no error")
		}
		pauses = append(pauses, s.SyncState().Next.Sub(now))
		now = s.SyncState().Next
	}
	want := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute}
	if diff := cmp.Diff(want, pauses[:8]); diff != "" || pauses[11] != time.Hour {
		t.Errorf("%v", pauses)
	}
	if _, _, err := s.Documents(t.Context()); err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("error is %v", err)
	}
	f.setVersion(1, nil)
	_, err := s.Sync(t.Context())
	checkError(t, err)
	if state := s.SyncState(); state.Failure != "" || state.Failures != 0 || !state.Next.Equal(now.Add(time.Minute)) {
		t.Errorf("%+v", state)
	}
}

// A new revision of the same documents is recorded, but not written as a second version.
func TestSameContent(t *testing.T) {
	t.Parallel()
	dir, f := t.TempDir(), &numberedFetcher{n: 1, same: true}
	s := newSource(dir, f)
	for n := 1; n <= 3; n++ {
		f.setVersion(n, nil)
		_, err := s.Sync(t.Context())
		checkError(t, err)
	}
	documents, _, err := s.Documents(t.Context())
	checkError(t, err)
	if documents[0].Revision != "3" {
		t.Errorf("revision is %s", documents[0].Revision)
	}
	versions, err := filepath.Glob(filepath.Join(dir, "v-*"))
	checkError(t, err)
	if len(versions) != 1 {
		t.Errorf("%v", versions)
	}
}

// After a copy was damaged, the next synchronization replaces it with a complete version.
func TestChangedCopyIsFetchedAgain(t *testing.T) {
	t.Parallel()
	for name, meddle := range map[string]func(dir, version string) error{
		"no JSON": func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "current.json"), []byte("{"), 0o600) },
		"another origin": func(dir, _ string) error {
			return editFile(filepath.Join(dir, "current.json"), `"origin":"o"`, `"origin":"p"`)
		},
		"version outside the copy": func(dir, version string) error {
			return editFile(filepath.Join(dir, "current.json"), version, "v-/../../..")
		},
		"missing file": func(dir, version string) error {
			return os.Remove(filepath.Join(dir, version, "files", "dir", "07.json"))
		},
		"missing version": func(dir, version string) error { return os.RemoveAll(filepath.Join(dir, version)) },
	} {
		dir, f := t.TempDir(), &numberedFetcher{n: 1}
		s := newSource(dir, f)
		_, err := s.Sync(t.Context())
		checkError(t, err)
		versions, err := filepath.Glob(filepath.Join(dir, "v-*"))
		checkError(t, err)
		checkError(t, meddle(dir, filepath.Base(versions[0])))
		f.setVersion(2, nil)
		if _, err := s.Sync(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := readWhole(t, s); got != "2" {
			t.Errorf("%s: version %s is served", name, got)
		}
	}
}

// A changed file of a copy is refused, and an explicit synchronization restores it, even
// without a newer revision.
func TestChangedFile(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"another size": "evil", "the same size": "2"} {
		dir, f := t.TempDir(), &numberedFetcher{n: 1}
		s := newSource(dir, f)
		_, err := s.Sync(t.Context())
		checkError(t, err)
		files, err := filepath.Glob(filepath.Join(dir, "v-*", "files", "dir", "07.json"))
		checkError(t, err)
		checkError(t, os.WriteFile(files[0], []byte(content), 0o600))
		c := catalog.New([]catalog.Source{s}, catalog.Options{})
		checkError(t, c.Load(t.Context()))
		refused := 0
		for _, d := range c.Diagnostics() {
			if d.Code == "file-changed" && d.File == "https://x//dir/07.json" {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%s: the file was refused %d times: %v", name, refused, c.Diagnostics())
		}
		_, err = s.Sync(t.Context())
		checkError(t, err)
		if got := readWhole(t, s); got != "1" {
			t.Errorf("%s: %q is served", name, got)
		}
		_, err = s.Sync(t.Context())
		checkError(t, err)
		if versions, _ := filepath.Glob(filepath.Join(dir, "v-*")); len(versions) != 2 {
			t.Errorf("%s: %d versions: unchanged files were fetched again", name, len(versions))
		}
	}
}

func editFile(path, before, after string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(string(data), before, after)), 0o600)
}

// writeForever runs in the child process and writes version after version.
func writeForever(dir string) {
	f := &numberedFetcher{}
	s := newSource(dir, f)
	for n := 1; ; n++ {
		f.setVersion(n, nil)
		if _, err := s.Sync(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Fprintln(os.Stdout, n)
	}
}

// After a process that writes versions is killed, the copy is one complete version. The
// next synchronization removes incomplete versions.
func TestKilledWhileWriting(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	checkError(t, err)
	dir := t.TempDir()
	kills := 20
	if testing.Short() {
		kills = 3
	}
	for i := range kills {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		checkError(t, err)
		checkError(t, cmd.Start())
		// Kill the process after its first version, at a different time in each round.
		_, err = io.ReadFull(out, make([]byte, 2+i%7))
		checkError(t, err)
		checkError(t, cmd.Process.Kill())
		_ = cmd.Wait() // the error is that of the kill
		readWhole(t, newSource(dir, &numberedFetcher{}))
	}
	f := &numberedFetcher{n: 1_000_000}
	_, err = newSource(dir, f).Sync(t.Context())
	checkError(t, err)
	left, err := filepath.Glob(filepath.Join(dir, "stage-*"))
	checkError(t, err)
	if len(left) > 0 {
		t.Errorf("%v was left", left)
	}
}

// Names from a remote source are refused if they are unsafe as file names.
func TestIsSafe(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.json", "dir/a.json", "guides/01-ä.md", "a b.json"} {
		if !mirror.IsSafe(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{
		"", ".", "..", "/a", "a/", "a//b", "./a", "a/../b", "../a", `a\b`, "a:b", "a\x00b", "a\nb", "\xff", "a\u202eb", "nul", "NUL.json", "dir/com1.json",
		".git/config", "x/.GIT/y", "a.", "a ", "dir./x", strings.Repeat("a", 500), "a?b", "a*b",
	} {
		if mirror.IsSafe(name) {
			t.Errorf("%q is allowed", name)
		}
	}
}
