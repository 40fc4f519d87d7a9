package git_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/git"
)

// TestHostileRepository checks that a repository with hostile files serves only its good
// workflow, that refused files are reported, and that no program of the repository is
// executed.
func TestHostileRepository(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("creating links needs a privilege on Windows")
	}
	r := newRepo(t)
	secret := filepath.Join(t.TempDir(), "secret.json")
	checkError(t, os.WriteFile(secret, []byte(workflowText("secret", "1.0.0")), 0o600))
	checkError(t, os.Symlink(secret, filepath.Join(r.dir, "workflows", "absolute.json")))
	checkError(t, os.Symlink("../../../../etc/passwd", filepath.Join(r.dir, "workflows", "up.json")))
	checkError(t, os.Symlink("one.json", filepath.Join(r.dir, "workflows", "inner.json")))
	checkError(t, os.Symlink("/etc", filepath.Join(r.dir, "workflows", "etc")))
	r.writeFile("workflows/huge.json", strings.Repeat(" ", 3<<20))
	r.writeFile("workflows/broken.json", `{"id": `)
	r.writeFile("workflows/CON.json", workflowText("device", "1.0.0"))
	r.writeFile("workflows/node_modules/x.json", workflowText("module", "1.0.0"))
	// Filters and hooks that git would run at a checkout.
	touched := filepath.Join(t.TempDir(), "touched")
	r.writeFile(".gitattributes", "*.json filter=evil\n")
	r.runGit("config", "filter.evil.smudge", "touch "+touched)
	r.writeFile(".git/hooks/post-checkout", "#!/bin/sh\ntouch "+touched+"\n")
	checkError(t, os.Chmod(filepath.Join(r.dir, ".git", "hooks", "post-checkout"), 0o755))
	// A submodule, whose address is an option of ssh.
	head := r.runGit("rev-parse", "HEAD")
	r.writeFile(".gitmodules", "[submodule \"x\"]\n\tpath = workflows/sub\n\turl = -oProxyCommand=touch\n")
	r.runGit("add", "-A")
	r.runGit("update-index", "--add", "--cacheinfo", "160000,"+head+",workflows/sub")
	r.runGit("commit", "-q", "-m", "evil")

	server := smartHTTP(t, filepath.Dir(r.dir), "")
	for _, url := range []string{r.dir, server.URL + "/repo"} {
		dir := t.TempDir()
		s := newSource(t, dir, git.Options{URL: url, Hosts: []string{"http://" + strings.TrimPrefix(server.URL, "http://")}})
		syncSource(t, s)
		c := loadCatalog(t, s)
		if diff := cmp.Diff([]string{"one@1.0.0"}, servedBy(t, c)); diff != "" {
			t.Error(diff)
		}
		var got []string
		for _, d := range c.Diagnostics() {
			got = append(got, d.Code+" "+filepath.Base(d.File))
		}
		for _, want := range []string{
			"file-link absolute.json", "file-link up.json", "file-link inner.json", "file-too-large huge.json", "file-name CON.json", "git-submodule sub",
		} {
			if !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("%q is not reported: %v", want, got)
			}
		}
		checkError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type()&os.ModeSymlink != 0 {
				t.Errorf("%s is a link", path)
			}
			return err
		}))
	}
	if _, err := os.Stat(touched); err == nil {
		t.Error("a program from the repository was executed")
	}
}

// TestHandwrittenTree checks that files with unsafe names, which the git program would not
// commit, are reported and not written.
func TestHandwrittenTree(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	put := func(kind string, data []byte) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", "hash-object", "-t", kind, "--literally", "-w", "--stdin")
		cmd.Dir, cmd.Stdin = r.dir, bytes.NewReader(data)
		out, err := cmd.Output()
		checkError(t, err)
		return strings.TrimSpace(string(out))
	}
	type file struct{ mode, name, hash string }
	tree := func(entries ...file) string {
		var b bytes.Buffer
		for _, e := range entries {
			hash, err := hex.DecodeString(e.hash)
			checkError(t, err)
			b.WriteString(e.mode + " " + e.name + "\x00" + string(hash))
		}
		return put("tree", b.Bytes())
	}
	blob := put("blob", []byte(workflowText("evil", "1.0.0")))
	good := put("blob", []byte(workflowText("good", "1.0.0")))
	inner := tree(file{"100644", "x.json", blob})
	root := tree(file{"40000", "workflows", tree(
		file{"40000", "..", inner},
		file{"100644", "../../../up.json", blob},
		file{"100644", "/etc/abs.json", blob},
		file{"40000", ".GIT", inner},
		file{"100644", "a\\b.json", blob},
		file{"100644", "bell\a.json", blob},
		file{"100644", "Good.json", blob},
		file{"100644", "c:d.json", blob},
		file{"100644", "good.json", good},
	)})
	commit := put("commit", []byte("tree "+root+"\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n"))
	r.runGit("update-ref", "refs/heads/master", commit)

	copyDir := t.TempDir()
	src := newSource(t, copyDir, git.Options{URL: r.dir})
	syncSource(t, src)
	documents, found, err := src.Documents(t.Context())
	checkError(t, err)
	var names []string
	for _, d := range documents {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"Good.json"}, names); diff != "" {
		t.Error(diff)
	}
	if len(found) < 6 {
		t.Errorf("the refusals are not reported: %v", found)
	}
	checkError(t, filepath.WalkDir(filepath.Dir(copyDir), func(path string, _ os.DirEntry, err error) error {
		if base := filepath.Base(path); base == "up.json" || base == "abs.json" || base == "x.json" {
			t.Errorf("%s was written", path)
		}
		return err
	}))
}

// TestTooLarge checks that repositories above the limits are refused. A small file that
// decompresses to a large one is reported and not served.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	server := smartHTTP(t, filepath.Dir(r.dir), "")
	opts := git.Options{URL: server.URL + "/repo", Hosts: []string{"http://" + strings.TrimPrefix(server.URL, "http://")}}
	s := newSource(t, t.TempDir(), opts)
	syncSource(t, s)

	noise := make([]byte, 2<<20)
	_, _ = rand.Read(noise)
	r.writeFile("noise.bin", string(noise))
	r.commitAll()
	if done := syncSource(t, s); !done.Changed && done.Before == done.After {
		t.Errorf("%+v", done)
	}
	r.runGit("config", "uploadpack.allowFilter", "false")
	small := opts
	small.Limits.Bytes = 1 << 20
	if _, err := newSource(t, t.TempDir(), small).Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeTooLarge {
		t.Errorf("a large commit: %v", err)
	}
	few := opts
	few.Limits.Files = 1
	r.writeFile("workflows/two.json", workflowText("two", "1.0.0"))
	r.commitAll()
	if _, err := newSource(t, t.TempDir(), few).Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeTooLarge {
		t.Errorf("many documents: %v", err)
	}
	// The file has 80 MB, compressed to 80 kB. It must not be decompressed: git reports its
	// size.
	r.writeFile("workflows/bomb.json", strings.Repeat("\x00", 80<<20))
	r.commitAll()
	for _, filter := range []string{"false", "true"} {
		r.runGit("config", "uploadpack.allowFilter", filter)
		s := newSource(t, t.TempDir(), opts)
		syncSource(t, s)
		c := loadCatalog(t, s)
		if diff := cmp.Diff([]string{"one@1.0.0", "two@1.0.0"}, servedBy(t, c)); diff != "" {
			t.Error(diff)
		}
		if got := codeList(c); !strings.Contains(strings.Join(got, " "), "file-too-large") {
			t.Errorf("the refusal is not reported: %v", got)
		}
	}
}

// TestHostileHost checks that each broken host causes an error without the token, and that
// no redirect to another host is followed.
func TestHostileHost(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed to %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	tests := []struct {
		name   string
		handle http.HandlerFunc
	}{
		{"redirect to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path+"?service=git-upload-pack", http.StatusFound)
		}},
		{"redirect to a cloud metadata address", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254"+r.URL.Path, http.StatusFound)
		}},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }},
		{"endless references", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000")
			line := "003f" + strings.Repeat("a", 40) + " refs/heads/aaaaaaa\n"
			for {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}},
		{"nothing", func(http.ResponseWriter, *http.Request) {}},
		{"an error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.handle)
			defer server.Close()
			s := newSource(t, t.TempDir(), git.Options{
				URL: server.URL + "/repo", Hosts: []string{"http://" + strings.TrimPrefix(server.URL, "http://")},
				Credentials: func(string) (string, string) { return "", "the-token-of-the-host" },
			})
			_, err := s.Sync(t.Context())
			if err == nil || strings.Contains(err.Error(), "the-token") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// sshServer accepts one key and runs git-upload-pack, as a host does.
func sshServer(t *testing.T, client ssh.PublicKey) (address string, host ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	checkError(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	checkError(t, err)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.Marshal()) {
			return nil, os.ErrPermission
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	checkError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serveSSH(conn, config)
		}
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return listener.Addr().String(), signer.PublicKey()
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, inner, err := offered.Accept()
		if err != nil {
			return
		}
		for req := range inner {
			if req.Type != "exec" {
				_ = req.Reply(false, nil)
				continue
			}
			_ = req.Reply(true, nil)
			path, ok := strings.CutPrefix(string(req.Payload[4:]), "git-upload-pack '")
			if ok {
				cmd := exec.CommandContext(context.Background(), "git-upload-pack", strings.TrimSuffix(path, "'"))
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
				cmd.Stdout = channel
				in, _ := cmd.StdinPipe()
				go func() { _, _ = io.Copy(in, channel); in.Close() }() // drain the input, as a host does
				_ = cmd.Run()
			}
			_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, 0})
			_ = channel.Close()
		}
	}
}

// TestOverSSH checks the keys of the user and of the host, which must be known.
func TestOverSSH(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	if _, err := exec.LookPath("git-upload-pack"); err != nil {
		t.Skip("this test needs git-upload-pack, which is not installed")
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	checkError(t, err)
	key, err := ssh.NewPublicKey(public)
	checkError(t, err)
	address, host := sshServer(t, key)
	dir := t.TempDir()
	block, err := ssh.MarshalPrivateKey(private, "")
	checkError(t, err)
	id := filepath.Join(dir, "id_ed25519")
	checkError(t, os.WriteFile(id, pem.EncodeToMemory(block), 0o600))
	known := filepath.Join(dir, "known_hosts")
	checkError(t, os.WriteFile(known, []byte(knownhosts.Line([]string{address}, host)+"\n"), 0o600))
	opts := git.Options{URL: "ssh://git@" + address + r.dir, SSH: git.SSH{Key: id, KnownHosts: known}}

	s := newSource(t, t.TempDir(), opts)
	syncSource(t, s)
	if diff := cmp.Diff([]string{"one@1.0.0"}, servedNames(t, s)); diff != "" {
		t.Error(diff)
	}
	if again := syncSource(t, s); again.Changed {
		t.Errorf("%+v", again)
	}

	unknown := opts
	unknown.SSH.KnownHosts = filepath.Join(dir, "empty")
	checkError(t, os.WriteFile(unknown.SSH.KnownHosts, nil, 0o600))
	if _, err := newSource(t, t.TempDir(), unknown).Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeForbidden || !strings.Contains(err.Error(), "not known") {
		t.Errorf("a host with an unknown key: %v", err)
	}
	changed := opts
	changed.SSH.KnownHosts = filepath.Join(dir, "changed")
	checkError(t, os.WriteFile(changed.SSH.KnownHosts, []byte(knownhosts.Line([]string{address}, key)+"\n"), 0o600))
	if _, err := newSource(t, t.TempDir(), changed).Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeForbidden || !strings.Contains(err.Error(), "differs from the known key") {
		t.Errorf("a host with a changed key: %v", err)
	}
	nobody := opts
	nobody.SSH.Key = filepath.Join(dir, "gone")
	if _, err := newSource(t, t.TempDir(), nobody).Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("without a key: %v", err)
	}
	gone := opts
	gone.URL += "-gone"
	if _, err := newSource(t, t.TempDir(), gone).Sync(t.Context()); err == nil {
		t.Error("a missing repository was fetched")
	}
}

// TestSilentHost checks that Sync returns an error after its time limit if a host accepts a
// connection but never answers.
func TestSilentHost(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	checkError(t, err)
	defer listener.Close()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	checkError(t, err)
	key, err := ssh.NewPublicKey(public)
	checkError(t, err)
	dir := t.TempDir()
	block, err := ssh.MarshalPrivateKey(private, "")
	checkError(t, err)
	checkError(t, os.WriteFile(filepath.Join(dir, "id_ed25519"), pem.EncodeToMemory(block), 0o600))
	address := listener.Addr().String()
	checkError(t, os.WriteFile(filepath.Join(dir, "known_hosts"), []byte(knownhosts.Line([]string{address}, key)+"\n"), 0o600))
	for _, url := range []string{"http://" + address + "/x", "ssh://" + address + "/x"} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		s := newSource(t, t.TempDir(), git.Options{URL: url, Hosts: []string{"http://" + address}, SSH: git.SSH{Key: filepath.Join(dir, "id_ed25519"), KnownHosts: filepath.Join(dir, "known_hosts")}})
		if _, err := s.Sync(ctx); err == nil {
			t.Errorf("%s: Sync returned no error", url)
		}
		cancel()
	}
}
