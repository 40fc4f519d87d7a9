// Package install adds Guideway to the MCP configuration of a client and takes
// it out again. It keeps every byte of the file that it was not asked to
// change: comments, order of keys, indentation, line endings, byte order mark.
//
// Planning is pure: Plan and PlanUndo turn a File into a Change that holds the
// bytes before and after. Read and Apply are the only parts that touch a disk.
package install

import (
	"bytes"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
)

// DefaultName is the name that a client knows the server by.
const DefaultName = "guideway"

// Request is what to add.
type Request struct {
	// Name is the key of the entry; empty means DefaultName.
	Name string
	// Command is the absolute path of what is started, and Args are its
	// arguments; none means those of the binary.
	Command string
	Args    []string
	// Env is set for the server; other variables of an earlier entry stay.
	Env map[string]string
	// Force replaces, or removes, an entry of that name that starts another
	// program.
	Force bool
}

// Entry is one server in a client's configuration, as far as Guideway reads it.
type Entry struct {
	Command string
	Args    []string
	Env     map[string]string
}

// File is a configuration file as it was read.
type File struct {
	// Path is where the client looks.
	Path string
	// Exists tells an empty file from a missing one.
	Exists bool
	// Content is the bytes of the file.
	Content []byte
	// Backups are the earlier contents that Guideway put aside, oldest first.
	Backups []Backup
}

// Backup is one earlier content of a configuration file.
type Backup struct {
	Path    string
	Content []byte
}

// Action says what a Change does.
type Action string

// The actions.
const (
	// ActionInstalled adds an entry that was not there.
	ActionInstalled Action = "installed"
	// ActionUpdated changes the entry that was there.
	ActionUpdated Action = "updated"
	// ActionNone leaves everything as it is: the entry is there already.
	ActionNone Action = "already installed"
	// ActionRemoved takes the entry out.
	ActionRemoved Action = "removed"
	// ActionRestored puts back the entry that was there before Guideway.
	ActionRestored Action = "restored"
	// ActionAbsent leaves everything as it is: there is no entry to take out.
	ActionAbsent Action = "not installed"
)

// Change is a planned edit of one file.
type Change struct {
	Action Action
	Client Client
	Path   string
	// Before and After are the whole contents. Existed and Delete say whether
	// the file is there before and after.
	Before, After []byte
	Existed       bool
	Delete        bool
	// Backup says that Before is put aside first.
	Backup bool
	// Consumed are backups that say nothing any more once After is in place.
	Consumed []Backup
	// OldCommand is the command of the entry that is changed or removed.
	OldCommand string
	// Private says that a new file is readable by its owner alone.
	Private bool
	// Notes are things that a person should know.
	Notes []string
}

// Changes says whether anything is written.
func (c Change) Changes() bool {
	return c.Delete || c.Action != ActionNone && c.Action != ActionAbsent
}

// format is one configuration language. Its methods are pure.
type format interface {
	// lookup finds an entry; it fails for a file that does not parse.
	lookup(src []byte, name string) (Entry, bool, error)
	// put inserts or updates an entry.
	put(src []byte, name string, e Entry) ([]byte, error)
	// remove takes an entry out. The hint is the content from before the
	// entry came, or nil: what is empty now and was not there then goes too.
	remove(src []byte, name string, hint []byte) ([]byte, error)
	// restore gives the entry the value that it has in from.
	restore(src []byte, name string, from []byte) ([]byte, error)
	// snippet is the text to paste by hand.
	snippet(name string, e Entry) string
	// notes says what may keep the client from reading src.
	notes(src []byte, title string) []string
}

// Plan works out how to add Guideway to f. It changes nothing.
func Plan(env Env, client Client, req Request, f File) (Change, error) {
	name := nameOf(req)
	if err := checkRequest(client, name, req); err != nil {
		return Change{}, err
	}
	form := client.format()
	change := Change{
		Action: ActionInstalled, Client: client, Path: f.Path,
		Before: f.Content, Existed: f.Exists, Backup: f.Exists,
	}
	want := req.entry()
	old, found, err := form.lookup(f.Content, name)
	if err != nil {
		return Change{}, refuse(err, f.Path, client, name, want)
	}
	if found {
		if !req.Force && name != DefaultName && !looksOurs(env, old, req.Command) {
			return Change{}, foreign(f.Path, name, old, "--name "+DefaultName+", or --force to replace it")
		}
		change.Action, change.OldCommand = ActionUpdated, old.Command
		want.Env = merged(old.Env, req.Env)
		if sameEntry(old, want) {
			change.Action, change.After, change.Backup = ActionNone, f.Content, false
			return change, nil
		}
	}
	after, err := form.put(f.Content, name, want)
	if err == nil {
		err = verify(form, after, name, want)
	}
	if err != nil {
		return Change{}, refuse(err, f.Path, client, name, want)
	}
	change.After = after
	change.Notes = form.notes(f.Content, client.Title)
	return change, nil
}

// PlanUndo works out how to take Guideway out of f. Where nothing else changed
// since it was added, the result is the earlier content byte for byte.
func PlanUndo(env Env, client Client, req Request, f File) (Change, error) {
	name := nameOf(req)
	form := client.format()
	change := Change{
		Action: ActionAbsent, Client: client, Path: f.Path,
		Before: f.Content, After: f.Content, Existed: f.Exists,
	}
	entry, found, err := form.lookup(f.Content, name)
	if err != nil {
		return Change{}, guideway.Errorf(guideway.CodeInvalid, "cannot edit %s (%w)", at(f.Path, err), err).
			WithFix("mend the file, then run the same command again")
	}
	if !found {
		return change, nil
	}
	if !req.Force && name != DefaultName && !looksOurs(env, entry, req.Command) {
		return Change{}, foreign(f.Path, name, entry, "--force to remove it all the same")
	}
	change.OldCommand = entry.Command
	if unwind(form, name, &f, &change) {
		return change, nil
	}
	if err := undoByEdit(form, name, f, &change); err != nil {
		return Change{}, guideway.Errorf(guideway.CodeInvalid, "cannot take %q out of %s (%w)", name, change.Path, err).
			WithFix("delete the entry %q by hand", name)
	}
	return change, nil
}

// unwind follows the backups back as long as each, with the entry put in, is
// exactly what followed it, and reports whether that ends the undoing. If not,
// f is left at the oldest content that it came to.
func unwind(form format, name string, f *File, change *Change) bool {
	for len(f.Backups) > 0 {
		last := f.Backups[len(f.Backups)-1]
		if !follows(form, name, last.Content, f.Content) {
			break
		}
		f.Content, f.Backups = last.Content, f.Backups[:len(f.Backups)-1]
		change.Consumed = append(change.Consumed, last)
	}
	_, still, err := form.lookup(f.Content, name)
	switch {
	case err != nil || still && len(f.Backups) > 0:
		return false
	case !still:
		change.Action, change.After = ActionRemoved, f.Content
	case follows(form, name, nil, f.Content):
		// The file came from nothing.
		change.Action, change.After, change.Delete = ActionRemoved, nil, true
	case len(change.Consumed) > 0:
		change.Action, change.After = ActionRestored, f.Content
	default:
		return false
	}
	return true
}

// follows says whether state is what before becomes when the entry of state is
// put in.
func follows(form format, name string, before, state []byte) bool {
	entry, found, err := form.lookup(state, name)
	if err != nil || !found || bytes.Equal(before, state) {
		return false
	}
	got, err := form.put(before, name, entry)
	return err == nil && bytes.Equal(got, state)
}

func undoByEdit(form format, name string, f File, change *Change) error {
	change.Consumed, change.Backup = nil, true
	var hint, prior []byte
	for _, b := range slices.Backward(f.Backups) {
		_, found, err := form.lookup(b.Content, name)
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
		after, err := form.restore(f.Content, name, prior)
		change.Action, change.After = ActionRestored, after
		if err != nil || !bytes.Equal(after, f.Content) {
			return err
		}
	}
	after, err := form.remove(f.Content, name, hint)
	if err != nil {
		return err
	}
	if _, still, err := form.lookup(after, name); err != nil || still {
		return guideway.Errorf(guideway.CodeInternal, "the edit did not take")
	}
	change.Action, change.After = ActionRemoved, after
	return nil
}

// entry is what a client is to have.
func (r Request) entry() Entry {
	e := Entry{Command: r.Command, Args: r.Args, Env: r.Env}
	if len(e.Args) == 0 {
		e.Args = mcpArgs()
	}
	return e
}

func nameOf(req Request) string {
	if req.Name == "" {
		return DefaultName
	}
	return req.Name
}

// CheckName refuses a name that some client does not take.
func CheckName(name string) error {
	for _, r := range name {
		ok := r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !ok {
			return guideway.Errorf(guideway.CodeInvalid,
				"%q is no name for a server (only letters, digits, - and _ work in every client)", name).
				WithFix("--name %s", DefaultName)
		}
	}
	return nil
}

func checkRequest(client Client, name string, req Request) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if req.Command == "" {
		return guideway.Errorf(guideway.CodeInternal, "no command to install in %s", client.ID)
	}
	for k := range req.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			return guideway.Errorf(guideway.CodeInvalid, "%q is no name for an environment variable", k).
				WithFix("--env NAME=value")
		}
	}
	return nil
}

// looksOurs says whether an entry starts Guideway.
func looksOurs(env Env, e Entry, command string) bool {
	base := strings.ToLower(path.Base(strings.ReplaceAll(e.Command, `\`, "/")))
	return startsPackage(e) || len(e.Args) > 0 && e.Args[0] == "mcp" &&
		(strings.HasPrefix(base, "guideway") || env.samePath(e.Command, command))
}

func sameEntry(a, b Entry) bool {
	return a.Command == b.Command && slices.Equal(a.Args, b.Args) && maps.Equal(a.Env, b.Env)
}

func merged(old, set map[string]string) map[string]string {
	all := maps.Clone(old)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, set)
	return all
}

// verify keeps an edit from being written unless it reads back.
func verify(form format, after []byte, name string, want Entry) error {
	got, found, err := form.lookup(after, name)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "the edit would break the file: %w", err)
	}
	if !found || !sameEntry(got, want) {
		return guideway.Errorf(guideway.CodeInternal, "the edit would not read back")
	}
	return nil
}

func foreign(file, name string, e Entry, fix string) error {
	what := e.Command
	if what == "" {
		what = "no local program"
	}
	return guideway.Errorf(guideway.CodeConflict, "%q in %s is not Guideway (it starts %s)", name, file, what).
		WithFix("%s", fix)
}

// refuse is the error for a file that is left alone; its fix carries the
// snippet to paste.
func refuse(err error, file string, client Client, name string, e Entry) error {
	return guideway.Errorf(guideway.CodeInvalid, "cannot edit %s (%w); it is unchanged", at(file, err), err).
		WithFix("mend the file and run this again, or paste this into it:\n%s", client.format().snippet(name, e))
}

// at gives file:line:column where the error knows it.
func at(file string, err error) string {
	var s *syntaxError
	if errors.As(err, &s) {
		return s.at(file)
	}
	return file
}
