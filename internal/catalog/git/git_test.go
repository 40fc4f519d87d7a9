package git_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/git"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// If the repository has no branch main, the source follows the default branch. It finds new
// commits, and it serves the copy after the repository is gone.
func TestLocalRepository(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := newSource(t, t.TempDir(), git.Options{URL: r.dir, Branch: "main"})
	first := syncSource(t, s)
	if first.Before != "" || first.After != r.runGit("rev-parse", "HEAD") || !first.Changed {
		t.Errorf("%+v", first)
	}
	if diff := cmp.Diff([]string{"one@1.0.0"}, servedNames(t, s)); diff != "" {
		t.Error(diff)
	}
	if state := s.SyncState(); state.Reference != "master" {
		t.Errorf("the followed branch is %q", state.Reference)
	}
	if again := syncSource(t, s); again.Changed {
		t.Errorf("a sync without a new commit reports a change: %+v", again)
	}

	r.writeFile("workflows/one.json", workflowText("one", "2.0.0"))
	r.writeFile("workflows/deep/two.yaml", workflowText("two", "1.0.0"))
	r.commitAll()
	syncSource(t, s)
	if diff := cmp.Diff([]string{"one@2.0.0", "two@1.0.0"}, servedNames(t, s)); diff != "" {
		t.Error(diff)
	}

	checkError(t, os.Rename(r.dir, r.dir+"-gone"))
	if _, err := s.Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("error is %v", err)
	}
	c := loadCatalog(t, s)
	if diff := cmp.Diff([]string{"one@2.0.0", "two@1.0.0"}, servedBy(t, c)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"source-offline "}, codeList(c)); diff != "" {
		t.Error(diff)
	}
}

// TestProvenance checks the source and the commit that a definition names.
func TestProvenance(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := newSource(t, t.TempDir(), git.Options{URL: r.dir})
	syncSource(t, s)
	head := r.commitAll() // This commit does not change the workflows.
	done := syncSource(t, s)
	if done.After != head {
		t.Errorf("%+v, want %s", done, head)
	}
	entry, err := loadCatalog(t, s).Get("one@team")
	checkError(t, err)
	if entry.Revision != head || entry.Source.Kind != "git" || entry.Source.Level != catalog.LevelReview {
		t.Errorf("%+v", entry)
	}
	if want := "file://" + filepath.ToSlash(r.dir) + "//one.json"; entry.Path != want {
		t.Errorf("path is %q, want %q", entry.Path, want)
	}
}

// A source can follow a branch, a tag, a commit and a directory. A reference that does not
// exist is an error.
func TestFollowedReference(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	old := r.runGit("rev-parse", "HEAD")
	r.runGit("tag", "-a", "v1", "-m", "one")
	r.runGit("checkout", "-q", "-b", "release/2")
	r.writeFile("workflows/one.json", workflowText("one", "2.0.0"))
	r.writeFile("team/flows/three.json", workflowText("three", "1.0.0"))
	r.commitAll()
	r.runGit("checkout", "-q", "master")
	server := smartHTTP(t, filepath.Dir(r.dir), "")
	for _, url := range []string{r.dir, server.URL + "/repo"} {
		tests := []struct {
			name string
			opts git.Options
			want []string
		}{
			{"default", git.Options{}, []string{"one@1.0.0"}},
			{"branch", git.Options{Branch: "release/2"}, []string{"one@2.0.0"}},
			{"tag", git.Options{Tag: "v1"}, []string{"one@1.0.0"}},
			{"commit", git.Options{Commit: old}, []string{"one@1.0.0"}},
			{"directory", git.Options{Branch: "release/2", Path: "team/flows"}, []string{"three@1.0.0"}},
		}
		for _, tt := range tests {
			tt.opts.URL, tt.opts.Hosts = url, []string{"http://" + strings.TrimPrefix(server.URL, "http://")}
			s := newSource(t, t.TempDir(), tt.opts)
			syncSource(t, s)
			if diff := cmp.Diff(tt.want, servedNames(t, s)); diff != "" {
				t.Errorf("%s of %s: %s", tt.name, url, diff)
			}
		}
		for _, opts := range []git.Options{{Branch: "gone"}, {Tag: "gone"}, {Path: "gone"}, {Commit: strings.Repeat("a", 40)}} {
			opts.URL, opts.Hosts = url, []string{"http://" + strings.TrimPrefix(server.URL, "http://")}
			s := newSource(t, t.TempDir(), opts)
			if _, err := s.Sync(t.Context()); err == nil {
				t.Errorf("%+v was fetched", opts)
			}
		}
	}
}

// A wrong token is refused, and the copy is served if the host fails. No error, address or
// file contains the token.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	const token = "s3cret-token-of-the-team"
	server := smartHTTP(t, filepath.Dir(r.dir), token)
	dir := t.TempDir()
	given := token
	opts := git.Options{
		URL: server.URL + "/repo", Hosts: []string{"http://" + strings.TrimPrefix(server.URL, "http://")},
		Credentials: func(string) (string, string) { return "", given },
	}
	s := newSource(t, dir, opts)
	syncSource(t, s)
	if diff := cmp.Diff([]string{"one@1.0.0"}, servedNames(t, s)); diff != "" {
		t.Fatal(diff)
	}
	given = "another"
	if _, err := s.Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeForbidden || strings.Contains(err.Error(), "another-") {
		t.Errorf("error is %v", err)
	}
	given = token

	// A forced push is fetched.
	r.runGit("commit", "-q", "--amend", "--allow-empty", "-m", "rewritten")
	r.writeFile("workflows/one.json", workflowText("one", "3.0.0"))
	r.runGit("commit", "-q", "-a", "--amend", "-m", "rewritten")
	syncSource(t, s)
	if diff := cmp.Diff([]string{"one@3.0.0"}, servedNames(t, s)); diff != "" {
		t.Error(diff)
	}
	server.Close()
	if _, err := s.Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff([]string{"one@3.0.0"}, servedNames(t, s)); diff != "" {
		t.Error(diff)
	}
	// A token in the address is not shown.
	f, err := git.New(git.Options{URL: strings.Replace(server.URL, "http://", "http://"+token+"@", 1) + "/repo", Hosts: opts.Hosts})
	checkError(t, err)
	if strings.Contains(f.Location()+f.Origin(), token) {
		t.Errorf("the token is shown in %s", f.Location())
	}
	_, err = f.Fetch(t.Context(), nil, func() (*mirror.Stage, error) { return nil, errors.New("not reached") })
	if err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("error is %v", err)
	}
	assertNowhere(t, dir, token)
}

// assertNowhere fails the test if a file contains a secret.
func assertNowhere(t *testing.T, dir, secret string) {
	t.Helper()
	checkError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s contains the secret", path)
		}
		return err
	}))
}

// TestDeletedBranch checks that no other branch is followed instead, and that the copy
// stays served.
func TestDeletedBranch(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.runGit("branch", "release")
	s := newSource(t, t.TempDir(), git.Options{URL: r.dir, Branch: "release"})
	syncSource(t, s)
	r.runGit("branch", "-D", "release")
	r.writeFile("workflows/one.json", workflowText("one", "9.0.0"))
	r.commitAll()
	if _, err := s.Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeNotFound || !strings.Contains(err.Error(), `no branch "release"`) {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff([]string{"one@1.0.0"}, servedNames(t, s)); diff != "" {
		t.Error(diff)
	}
}

// TestNewCommitIsFetched checks that a new commit is served without a call to Sync.
func TestNewCommitIsFetched(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	s := newSource(t, t.TempDir(), git.Options{URL: r.dir})
	c := catalog.New([]catalog.Source{s}, catalog.Options{})
	changes := make(chan catalog.Change, 10)
	c.OnChange(func(change catalog.Change) { changes <- change })
	ctx, cancel := context.WithCancel(t.Context())
	checkError(t, c.Open(ctx))
	defer c.Close()
	defer cancel()
	wait := func(want string) {
		t.Helper()
		for timeout := time.After(30 * time.Second); ; {
			select {
			case <-changes:
				if entry, err := c.Get("one"); err == nil && entry.Definition.Version == want {
					return
				}
			case <-timeout:
				t.Fatalf("version %s was not served in time: %v", want, c.Diagnostics())
			}
		}
	}
	wait("1.0.0")
	r.writeFile("workflows/one.json", workflowText("one", "2.0.0"))
	r.commitAll()
	wait("2.0.0")
}

// TestRefusedOptions checks that New refuses invalid options and accepts valid ones.
func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	const url = "https://github.com/acme/workflows"
	tests := []struct {
		name string
		opts git.Options
	}{
		{"branch of a shell", git.Options{URL: url, Branch: "main; rm -rf /"}},
		{"branch that is an option", git.Options{URL: url, Branch: "--upload-pack=x"}},
		{"branch with dots", git.Options{URL: url, Branch: "a/../b"}},
		{"tag with a brace", git.Options{URL: url, Tag: "x@{1}"}},
		{"short commit", git.Options{URL: url, Commit: "abc123"}},
		{"commit that is an option", git.Options{URL: url, Commit: "-x"}},
		{"branch and tag", git.Options{URL: url, Branch: "main", Tag: "v1"}},
		{"path out", git.Options{URL: url, Path: "../x"}},
		{"path in the .git directory", git.Options{URL: url, Path: ".git/hooks"}},
		{"host", git.Options{URL: "https://git.company.com/x/y"}},
		{"host with the suffix of a known host", git.Options{URL: "https://notgithub.com/x/y"}},
		{"known host as the user name", git.Options{URL: "https://github.com@evil.example/x"}},
		{"known host at another port", git.Options{URL: "https://github.com:8443/x/y"}},
		{"without encryption", git.Options{URL: "http://github.com/x/y"}},
		{"program as transport", git.Options{URL: "ext::sh -c touch% /tmp/x"}},
		{"file as transport", git.Options{URL: "file::/x"}},
		{"another scheme", git.Options{URL: "ftp://github.com/x/y"}},
		{"option", git.Options{URL: "--upload-pack=touch /tmp/x"}},
		{"option as an ssh host", git.Options{URL: "ssh://-oProxyCommand=x/y"}},
		{"option as an ssh path", git.Options{URL: "git@github.com:-x"}},
		{"cloud metadata address", git.Options{URL: "http://169.254.169.254/latest"}},
		{"control character", git.Options{URL: "https://github.com/x\ny"}},
		{"dots", git.Options{URL: "https://github.com/x/../y"}},
		{"relative", git.Options{URL: "some/dir"}},
		{"nothing", git.Options{}},
	}
	for _, tt := range tests {
		if _, err := git.New(tt.opts); err == nil {
			t.Errorf("%s is allowed", tt.name)
		}
	}
	for _, ok := range []git.Options{
		{URL: url},
		{URL: "git@github.com:acme/workflows.git"},
		{URL: "ssh://git@git.company.com:2222/x"},
		{URL: "file:///srv/repo"},
		{URL: "https://git.company.com/x", Hosts: []string{"git.company.com"}},
		{URL: "http://localhost:8080/x", Hosts: []string{"http://localhost:8080"}},
		{URL: url, Branch: "feature/a_b-1.2"},
	} {
		if _, err := git.New(ok); err != nil {
			t.Errorf("%+v: %v", ok, err)
		}
	}
}

// The usual token variable of a host, or one derived from its name, takes precedence over
// the general ones.
func TestTokenVariables(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"github.com": "GITHUB_TOKEN", "gitlab.com": "GITLAB_TOKEN", "bitbucket.org": "BITBUCKET_TOKEN",
		"git.company.com": "GIT_GIT_COMPANY_COM_TOKEN", "my-git.example.org": "GIT_MY_GIT_EXAMPLE_ORG_TOKEN",
	} {
		if got := git.TokenVariables(host)[0]; got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
	if diff := cmp.Diff([]string{"GIT_GIT_COMPANY_COM_TOKEN", "WORKFLOW_GIT_AUTH_TOKEN", "GIT_TOKEN"}, git.TokenVariables("git.company.com")); diff != "" {
		t.Errorf("variables of a different host (-want +got):\n%s", diff)
	}
}
