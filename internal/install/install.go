// Package install adds Guideway to the MCP configuration of a client and removes it. It
// leaves the rest of the file unchanged, byte for byte: comments, the order of keys,
// indentation, line endings, the byte order mark. A YAML list of servers in brackets is
// written again as a whole, with its comments.
//
// Planning is pure: Plan and PlanUndo turn a File into a Change with the bytes before and
// after. Only Read and Apply access the disk.
package install

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
)

// DefaultName is the default name of the server in a client.
const DefaultName = "guideway"

// Request is the entry to add.
type Request struct {
	// Name is the key of the entry; empty means DefaultName.
	Name string
	// Command is the absolute path of the program, and Args are its arguments. If Args
	// is empty, the default arguments of Guideway are used.
	Command string
	Args    []string
	// Env sets variables of the server. Other variables of an earlier entry stay.
	Env map[string]string
	// URL is the address of a server over HTTP. If it is set, the entry connects to it, and
	// Command, Args and Env are only used for a client that reaches the URL through
	// guideway connect.
	URL string
	// TokenEnv is the name of the environment variable with the bearer token of the URL, and
	// Token its value. The value is written only if the client cannot refer to a variable.
	TokenEnv, Token string
	// Force replaces or removes an entry that starts another program, under a name other
	// than DefaultName.
	Force bool
}

// Entry is a server in a client's configuration, reduced to the members that Guideway
// reads.
type Entry struct {
	Command string
	Args    []string
	Env     map[string]string
	// URL is the address of a server over HTTP.
	URL string
	// Authorization is the value of the header, or for Codex the name of the environment
	// variable with the token.
	Authorization string
}

// Target returns the command or the URL of an entry.
func (e Entry) Target() string { return cmp.Or(e.Command, e.URL) }

// File is a configuration file as it was read.
type File struct {
	// Path is the path that the client reads.
	Path string
	// Exists distinguishes an empty file from a missing one.
	Exists bool
	// Content is the content of the file.
	Content []byte
	// Backups are the earlier contents that Guideway has saved, oldest first.
	Backups []Backup
}

// Backup is an earlier content of a configuration file.
type Backup struct {
	Path    string
	Content []byte
}

// Action is the kind of a Change.
type Action string

// The actions.
const (
	// ActionInstalled adds an entry.
	ActionInstalled Action = "installed"
	// ActionUpdated changes an existing entry.
	ActionUpdated Action = "updated"
	// ActionNone changes nothing, because the entry is up to date.
	ActionNone Action = "already installed"
	// ActionRemoved removes the entry.
	ActionRemoved Action = "removed"
	// ActionRestored restores the entry that existed before Guideway.
	ActionRestored Action = "restored"
	// ActionAbsent changes nothing, because there is no entry to remove.
	ActionAbsent Action = "not installed"
)

// Change is a planned edit of one file.
type Change struct {
	Action Action
	Client Client
	Path   string
	// Before and After are the complete contents. Existed and Delete report whether the
	// file exists before and is deleted by the change.
	Before, After []byte
	Existed       bool
	Delete        bool
	// Backup reports that Before is saved first.
	Backup bool
	// Consumed are the backups that are no longer needed after the change.
	Consumed []Backup
	// OldTarget is the command or the URL of the entry that is changed or removed, and
	// Target that of the new entry.
	OldTarget, Target string
	// Private reports that a new file must be readable by its owner only.
	Private bool
	// Secret reports that the file gets a token, so that only its owner may read it.
	Secret bool
	// Notes are messages for the person.
	Notes []string
}

// Changes reports whether the file is written or deleted.
func (c Change) Changes() bool {
	return c.Delete || c.Action != ActionNone && c.Action != ActionAbsent
}

// Plan returns the change that adds Guideway to f. It writes nothing.
func Plan(env Env, client Client, req Request, f File) (Change, error) {
	name := nameOf(req)
	if err := checkRequest(client, name, req); err != nil {
		return Change{}, err
	}
	form := client.Form
	change := Change{
		Action: ActionInstalled, Client: client, Path: f.Path,
		Before: f.Content, Existed: f.Exists, Backup: f.Exists,
	}
	want, secret, err := client.newEntry(req)
	if err != nil {
		return Change{}, err
	}
	change.Target, change.Secret = want.Target(), secret
	old, found, err := form.lookupEntry(f.Content, name)
	if err != nil {
		return Change{}, unchangedError(err, f.Path, client, req)
	}
	if found {
		if !req.Force && name != DefaultName && !looksOurs(env, old, want.Target()) {
			return Change{}, foreignEntry(f.Path, name, old, "use --name "+DefaultName+", or --force to replace the entry")
		}
		change.Action, change.OldTarget = ActionUpdated, old.Target()
		want = keepValues(want, old)
		if sameEntry(old, want) {
			change.Action, change.After, change.Backup = ActionNone, f.Content, false
			return change, nil
		}
	}
	after, err := form.putEntry(f.Content, name, want)
	if err == nil {
		err = verifyEdit(form, after, name, want)
	}
	if err != nil {
		return Change{}, unchangedError(err, f.Path, client, req)
	}
	change.After = after
	change.Notes = append(form.fileNotes(f.Content, client.Title), client.entryNotes(req, secret)...)
	return change, nil
}

// keepValues returns an entry with the variables and the token of an earlier one, as long as
// it connects to the same server.
func keepValues(e, old Entry) Entry {
	if e.URL == "" {
		e.Env = mergeVariables(old.Env, e.Env)
	} else if e.URL == old.URL {
		e.Authorization = cmp.Or(e.Authorization, old.Authorization)
	}
	return e
}

// PlanUndo returns the change that removes Guideway from f. If nothing else has changed
// since it was added, the result is the earlier content, byte for byte.
func PlanUndo(env Env, client Client, req Request, f File) (Change, error) {
	name := nameOf(req)
	form := client.Form
	change := Change{
		Action: ActionAbsent, Client: client, Path: f.Path,
		Before: f.Content, After: f.Content, Existed: f.Exists,
	}
	entry, found, err := form.lookupEntry(f.Content, name)
	if err != nil {
		return Change{}, guideway.Errorf(guideway.CodeInvalid, "cannot edit %s (%w)", positionOf(f.Path, err), err).
			WithFix("fix the file, then run the same command again")
	}
	if !found {
		return change, nil
	}
	if !req.Force && name != DefaultName && !looksOurs(env, entry, cmp.Or(req.URL, req.Command)) {
		return Change{}, foreignEntry(f.Path, name, entry, "use --force to remove the entry anyway")
	}
	change.OldTarget = entry.Target()
	if unwindBackups(form, name, &f, &change) {
		return change, nil
	}
	if err := undoByEdit(form, name, f, &change); err != nil {
		return Change{}, guideway.Errorf(guideway.CodeInvalid, "cannot remove %q from %s (%w)", name, change.Path, err).
			WithFix("delete the entry %q by hand", name)
	}
	return change, nil
}

// unwindBackups goes back through the backups as long as adding the entry to each of them
// results in exactly the next content. It reports whether the undo is then complete. If
// not, f is set to the oldest content that it has reached.
func unwindBackups(form format, name string, f *File, change *Change) bool {
	for len(f.Backups) > 0 {
		last := f.Backups[len(f.Backups)-1]
		if !isResultOf(form, name, last.Content, f.Content) {
			break
		}
		f.Content, f.Backups = last.Content, f.Backups[:len(f.Backups)-1]
		change.Consumed = append(change.Consumed, last)
	}
	_, still, err := form.lookupEntry(f.Content, name)
	switch {
	case err != nil || still && len(f.Backups) > 0:
		return false
	case !still:
		change.Action, change.After = ActionRemoved, f.Content
	case isResultOf(form, name, nil, f.Content):
		// The file did not exist.
		change.Action, change.After, change.Delete = ActionRemoved, nil, true
	case len(change.Consumed) > 0:
		change.Action, change.After = ActionRestored, f.Content
	default:
		return false
	}
	return true
}

// isResultOf reports whether adding the entry that state contains to before results in
// state.
func isResultOf(form format, name string, before, state []byte) bool {
	entry, found, err := form.lookupEntry(state, name)
	if err != nil || !found || bytes.Equal(before, state) {
		return false
	}
	got, err := form.putEntry(before, name, entry)
	return err == nil && bytes.Equal(got, state)
}

func undoByEdit(form format, name string, f File, change *Change) error {
	change.Consumed, change.Backup = nil, true
	var hint, prior []byte
	for _, b := range slices.Backward(f.Backups) {
		_, found, err := form.lookupEntry(b.Content, name)
		if err != nil {
			continue
		}
		if !found {
			hint, prior = b.Content, nil
			break
		}
		prior = b.Content
	}
	if prior != nil {
		after, err := form.restoreEntry(f.Content, name, prior)
		change.Action, change.After = ActionRestored, after
		if err != nil || !bytes.Equal(after, f.Content) {
			return err
		}
	}
	after, err := form.removeEntry(f.Content, name, hint)
	if err != nil {
		return err
	}
	if _, still, err := form.lookupEntry(after, name); err != nil {
		return guideway.Errorf(guideway.CodeInternal, "the edit would break the file: %w", err)
	} else if still {
		return guideway.Errorf(guideway.CodeInternal, "the edited file still has the entry")
	}
	change.Action, change.After = ActionRemoved, after
	return nil
}

func nameOf(req Request) string { return cmp.Or(req.Name, DefaultName) }

// CheckName refuses a name that some client does not accept.
func CheckName(name string) error {
	for _, r := range name {
		ok := r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !ok {
			return guideway.Errorf(guideway.CodeInvalid,
				"%q is not a valid server name (only letters, digits, - and _ work in every client)", name).
				WithFix("use --name %s", DefaultName)
		}
	}
	return nil
}

func checkRequest(client Client, name string, req Request) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if req.URL != "" {
		if err := checkURL(req.URL); err != nil {
			return err
		}
	}
	if req.Command == "" && (req.URL == "" || client.Bridge) {
		return guideway.Errorf(guideway.CodeInternal, "no command to install in %s", client.ID)
	}
	for k := range req.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			return guideway.Errorf(guideway.CodeInvalid, "%q is not a valid name of an environment variable", k).
				WithFix("use --env NAME=value")
		}
	}
	return nil
}

// looksOurs reports whether an entry starts Guideway, or has the target.
func looksOurs(env Env, e Entry, target string) bool {
	if e.Command == "" {
		return e.URL != "" && e.URL == target
	}
	base := strings.ToLower(path.Base(strings.ReplaceAll(e.Command, `\`, "/")))
	return startsPackage(e) || len(e.Args) > 0 && (e.Args[0] == "mcp" || e.Args[0] == connectCommand) &&
		(strings.HasPrefix(base, "guideway") || env.samePath(e.Command, target))
}

func sameEntry(a, b Entry) bool {
	return a.Command == b.Command && slices.Equal(a.Args, b.Args) && maps.Equal(a.Env, b.Env) &&
		a.URL == b.URL && a.Authorization == b.Authorization
}

func mergeVariables(old, set map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, old)
	maps.Copy(all, set)
	return all
}

// verifyEdit returns an error if the edited file does not have the entry.
func verifyEdit(form format, after []byte, name string, want Entry) error {
	got, found, err := form.lookupEntry(after, name)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "the edit would break the file: %w", err)
	}
	if !found || !sameEntry(got, want) {
		return guideway.Errorf(guideway.CodeInternal, "the edited file does not have the new entry")
	}
	return nil
}

func foreignEntry(file, name string, e Entry, fix string) error {
	return guideway.Errorf(guideway.CodeConflict, "the entry %q in %s is not an entry of Guideway (its command or URL is %s)", name, file, cmp.Or(e.Target(), "unknown")).
		WithFix("%s", fix)
}

// unchangedError returns the error for a file that is left unchanged. Its fix contains the
// text to paste, without a token.
func unchangedError(err error, file string, client Client, req Request) error {
	if req.Token != "" {
		req.Token = "TOKEN"
	}
	e, _, _ := client.newEntry(req)
	return guideway.Errorf(guideway.CodeInvalid, "cannot edit %s (%w); the file is unchanged", positionOf(file, err), err).
		WithFix("fix the file and run the command again, or paste this text into the file:\n%s", client.Form.entrySnippet(nameOf(req), e))
}

// positionOf returns file:line:column if the error has a position.
func positionOf(file string, err error) string {
	var s *syntaxError
	if errors.As(err, &s) {
		return s.positionIn(file)
	}
	return file
}
