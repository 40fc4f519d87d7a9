package git

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// maxAdvertised bounds the bytes of a host's list of references.
const maxAdvertised = 1 << 20

// target is a commit to fetch.
type target struct {
	// url is the address for git. It may have a suffix ".git" that the configured address
	// does not have.
	url  string
	hash string
	// ref is the name of the commit on the remote, and reference is its name for people.
	ref, reference string
}

// reference is a name that can lead to the followed commit.
type reference struct{ name, shown string }

// listCandidates returns the references that can lead to the commit. The first existing one
// is used.
func (f *Fetcher) listCandidates() []reference {
	standard := []reference{{"HEAD", "HEAD"}, {"refs/heads/main", "main"}, {"refs/heads/master", "master"}}
	switch {
	case f.opts.Tag != "":
		return []reference{{"refs/tags/" + f.opts.Tag, f.opts.Tag}}
	case f.opts.Branch == "main" || f.opts.Branch == "master":
		return append([]reference{{"refs/heads/" + f.opts.Branch, f.opts.Branch}}, standard...)
	case f.opts.Branch != "":
		return []reference{{"refs/heads/" + f.opts.Branch, f.opts.Branch}}
	default:
		return standard
	}
}

// errMissing returns the error for a branch, tag or commit that does not exist.
func (f *Fetcher) errMissing() error {
	switch {
	case f.opts.Commit != "":
		return guideway.Errorf(guideway.CodeNotFound, "the repository has no commit %s", f.opts.Commit).WithFix("set \"commit\" of the source to a commit of the repository, or set \"branch\" or \"tag\" instead")
	case f.opts.Tag != "":
		return guideway.Errorf(guideway.CodeNotFound, "the repository has no tag %q", f.opts.Tag).WithFix("set \"tag\" of the source to a tag of the repository")
	case f.opts.Branch != "" && f.opts.Branch != "main" && f.opts.Branch != "master":
		return guideway.Errorf(guideway.CodeNotFound, "the repository has no branch %q", f.opts.Branch).WithFix("set \"branch\" of the source to a branch of the repository")
	default:
		return guideway.Errorf(guideway.CodeNotFound, "the repository has no commits, or neither a default branch nor a branch main or master").WithFix("set \"branch\" of the source to a branch of the repository")
	}
}

// findRemote finds the followed commit of a repository on a host.
func (f *Fetcher) findRemote(ctx context.Context, git program) (target, error) {
	t := target{url: f.address.gitURL(), hash: f.opts.Commit, ref: f.opts.Commit, reference: "commit"}
	if f.opts.Commit != "" {
		return t, nil
	}
	hashes, branch, err := git.listRemote(ctx, t.url, f.listCandidates())
	if isRedirect(err) && !strings.HasSuffix(t.url, ".git") {
		t.url += ".git" // Some hosts redirect to the address with the suffix.
		hashes, branch, err = git.listRemote(ctx, t.url, f.listCandidates())
	}
	if err != nil {
		return t, err
	}
	for _, c := range f.listCandidates() {
		if t.hash = cmp.Or(hashes[c.name+"^{}"], hashes[c.name]); t.hash == "" {
			continue
		}
		t.ref, t.reference = c.name, c.shown
		if c.name == "HEAD" && branch != "" {
			t.reference = branch
		}
		return t, nil
	}
	return t, f.errMissing()
}

func isRedirect(err error) bool { return err != nil && strings.Contains(err.Error(), errRedirect) }

// listRemote returns the hashes of references by their names, and the branch that
// HEAD names.
func (p program) listRemote(ctx context.Context, url string, wanted []reference) (hashes map[string]string, branch string, err error) {
	args := []string{"ls-remote", "--symref", "--", url}
	for _, r := range wanted {
		args = append(args, r.name, r.name+"^{}")
	}
	hashes = map[string]string{}
	err = p.runCommand(ctx, "", func(out *bufio.Reader) error {
		text, err := io.ReadAll(io.LimitReader(out, maxAdvertised))
		if err != nil {
			return err
		}
		if len(text) == maxAdvertised {
			return fmt.Errorf("the list of references of the host has more than %d bytes", maxAdvertised-1)
		}
		for line := range strings.Lines(string(text)) {
			value, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if of, ok := strings.CutPrefix(value, "ref: refs/heads/"); ok && name == "HEAD" {
				branch = of
			} else if commitPattern().MatchString(value) {
				hashes[name] = value
			}
		}
		return nil
	}, args...)
	return hashes, branch, err
}

// findLocal finds the followed commit of a local repository.
func (f *Fetcher) findLocal(ctx context.Context, git program) (target, error) {
	candidates := f.listCandidates()
	if f.opts.Commit != "" {
		candidates = []reference{{f.opts.Commit, "commit"}}
	}
	var names []string
	for _, c := range candidates {
		names = append(names, c.name+"^{commit}")
	}
	hashes, err := git.lookUp(ctx, "commit", names)
	if err != nil {
		return target{}, err
	}
	for i, c := range candidates {
		if hashes[i] == "" {
			continue
		}
		t := target{hash: hashes[i], reference: c.shown}
		if c.name == "HEAD" {
			// A HEAD without a branch keeps its name.
			_ = git.runCommand(ctx, "", func(out *bufio.Reader) error {
				line, err := out.ReadString('\n')
				t.reference = cmp.Or(strings.TrimPrefix(strings.TrimSpace(line), "refs/heads/"), t.reference)
				return err
			}, "symbolic-ref", "-q", "HEAD")
		}
		return t, nil
	}
	return target{}, f.errMissing()
}

// gitDir returns the directory that contains the objects of a repository: its subdirectory
// .git, or the repository itself if it is bare.
func gitDir(dir string) (string, error) {
	for _, candidate := range []string{filepath.Join(dir, ".git"), dir} {
		head, err := os.Lstat(filepath.Join(candidate, "HEAD"))
		objects, objectsErr := os.Stat(filepath.Join(candidate, "objects"))
		if err == nil && objectsErr == nil && head.Mode().IsRegular() && objects.IsDir() {
			return candidate, nil
		}
	}
	err := guideway.Errorf(guideway.CodeNotFound, "%s is not a repository", dir).WithFix("use the directory that contains .git, or a bare repository")
	if data, readErr := os.ReadFile(filepath.Join(dir, ".git")); readErr == nil && strings.HasPrefix(string(data), "gitdir:") {
		err = err.WithFix("the directory is a worktree or a submodule: use the repository that its file .git names")
	}
	return "", err
}

// bareConfig is the configuration of the directory that objects are fetched into.
const bareConfig = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"

// fetchCommit fetches one commit without its history into an empty directory. If the host
// supports filters, files that are too large to be documents are omitted. It returns the
// hash of the commit.
func (f *Fetcher) fetchCommit(ctx context.Context, git program, t target, dir string) (string, error) {
	for _, part := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, part), 0o700); err != nil {
			return "", err
		}
	}
	config := filepath.Join(dir, "config")
	for name, text := range map[string]string{config: bareConfig, filepath.Join(dir, "HEAD"): "ref: refs/heads/none\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	const fetched = "refs/guideway/fetched"
	git.dir = dir
	err := f.watchSize(ctx, dir, func(ctx context.Context) error {
		return git.runCommand(
			ctx, "", func(out *bufio.Reader) error { _, err := io.Copy(io.Discard, out); return err },
			"fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-auto-gc",
			"--filter=blob:limit="+strconv.FormatInt(f.opts.Limits.FileBytes+1, 10), "--", t.url, "+"+t.ref+":"+fetched,
		)
	})
	if err != nil {
		return "", err
	}
	// The fetch has recorded the host as a source of missing objects. Remove that.
	if err := os.WriteFile(config, []byte(bareConfig), 0o600); err != nil {
		return "", err
	}
	git.env = makeEnvironment("", nil)
	hashes, err := git.lookUp(ctx, "commit", []string{fetched + "^{commit}"})
	if err != nil {
		return "", err
	}
	if hashes[0] == "" {
		return "", f.errMissing()
	}
	return hashes[0], nil
}

// watchSize runs a fetch, and stops it when it has received more than the limit.
func (f *Fetcher) watchSize(ctx context.Context, dir string, fetch func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tooLarge := guideway.Errorf(guideway.CodeTooLarge, "the repository is too large: the followed commit has more than %d bytes", f.opts.Limits.Bytes).
		WithFix("move the workflows to a separate repository, or raise maxBytes of the source")
	done := make(chan error, 1)
	go func() { done <- fetch(ctx) }()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			if err == nil && packSize(dir) > f.opts.Limits.Bytes {
				err = tooLarge
			}
			return err
		case <-ticker.C:
			if packSize(dir) > f.opts.Limits.Bytes {
				cancel(tooLarge)
			}
		}
	}
}

// packSize returns the bytes of objects that a fetch has received so far.
func packSize(dir string) (size int64) {
	// A file that vanishes was renamed, and is counted the next time.
	_ = filepath.WalkDir(filepath.Join(dir, "objects"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil && filepath.Ext(path) != ".idx" && !strings.HasPrefix(entry.Name(), "tmp_idx") {
			size += info.Size()
		}
		return nil
	})
	return size
}

// sshCommand returns the command that connects to ssh hosts, or "" if git uses the command
// that the user has configured. The configured command has no terminal for prompts.
func (f *Fetcher) sshCommand(ctx context.Context, git program) string {
	options := ""
	if key := f.opts.SSH.Key; key != "" {
		options += " -o IdentitiesOnly=yes" + sshFile("IdentityFile", key)
	}
	if file := f.opts.SSH.KnownHosts; file != "" {
		options += " -o GlobalKnownHostsFile=" + os.DevNull + sshFile("UserKnownHostsFile", file)
	}
	if options == "" {
		own := cmp.Or(os.Getenv("GIT_SSH_COMMAND"), os.Getenv("GIT_SSH"))
		if own == "" {
			_ = git.runCommand(ctx, "", func(out *bufio.Reader) error {
				own, _ = out.ReadString('\n')
				return nil
			}, "config", "--get", "core.sshCommand") // The command fails if the setting is missing.
		}
		if own != "" {
			return ""
		}
	}
	return "ssh -o BatchMode=yes" + options
}

// sshFile returns an option of ssh that names a file, as one word for a shell.
func sshFile(option, path string) string {
	return " -o '" + option + `="` + strings.NewReplacer(`'`, `'\''`, `%`, `%%`).Replace(path) + `"'`
}

// newProgram returns git with the settings that it needs to reach the repository.
func (f *Fetcher) newProgram(ctx context.Context) (program, error) {
	if _, err := Version(ctx); err != nil {
		return program{}, err
	}
	git, err := findProgram()
	if err != nil {
		return git, err
	}
	switch f.address.scheme {
	case schemeFile:
		git.env = makeEnvironment("", nil)
	case schemeSSH:
		git.env = makeEnvironment("ssh:https", nil)
		if command := f.sshCommand(ctx, git); command != "" {
			git.env = append(git.env, "GIT_SSH_COMMAND="+command)
		}
	default:
		var more [][2]string
		user, token := f.readCredentials()
		if token != "" {
			// The user's credential helpers are neither asked for this host nor given the
			// token to store. The token is in the environment, which other users cannot
			// read.
			key := "credential." + string(f.address.scheme) + "://" + f.address.hostPort() + ".helper"
			more = [][2]string{{key, ""}, {key, `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$GUIDEWAY_GIT_USER" "$GUIDEWAY_GIT_TOKEN"; }; f`}}
		}
		protocols := "https:ssh"
		if f.address.scheme == schemeHTTP {
			protocols = "http:" + protocols
		}
		git.env = append(makeEnvironment(protocols, more), "GUIDEWAY_GIT_USER="+user, "GUIDEWAY_GIT_TOKEN="+token)
	}
	return git, nil
}

// fetchNewer exports the followed commit if it differs from the commit in the copy.
func (f *Fetcher) fetchNewer(ctx context.Context, have *mirror.Previous, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	git, err := f.newProgram(ctx)
	if err != nil {
		return mirror.Fetched{}, err
	}
	find := f.findRemote
	if f.address.scheme == schemeFile {
		if git.dir, err = gitDir(f.address.path); err != nil {
			return mirror.Fetched{}, err
		}
		find = f.findLocal
	}
	t, err := find(ctx, git)
	if err != nil {
		return mirror.Fetched{}, err
	}
	got := mirror.Fetched{Revision: t.hash, Reference: t.reference}
	if have != nil && have.Revision == got.Revision {
		return got, nil
	}
	to, err := stage()
	if err != nil {
		return got, err
	}
	if f.address.scheme != schemeFile {
		scratch, err := to.Scratch()
		if err != nil {
			return got, err
		}
		if got.Revision, err = f.fetchCommit(ctx, git, t, scratch); err != nil {
			return got, err
		}
		git.dir = scratch
	}
	git.env = makeEnvironment("", nil)
	e := &export{git: git, limits: f.opts.Limits, stage: to}
	return got, e.exportDir(ctx, got.Revision, f.opts.Path)
}
