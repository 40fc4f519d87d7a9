package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// HookClient is a client whose hooks Guideway answers, and the location of their
// configuration. Package clienthook has the contracts.
type HookClient struct {
	// ID is the name on the command line, Title the name for people.
	ID, Title string
	// Project is the path of the file in a project, with slashes.
	Project string
	// Next is the action after which the client uses the hooks.
	Next string

	// Dir is the directory of the user's file, as expandPath reads it, and File its name.
	Dir, File string
	// Reports are the events that the client reports to Guideway.
	Reports []hookEvent
	// Element is the form of the element that starts the command of a client at an event (see
	// newElement), and Second the length of a second in the unit of its time limits.
	Element string
	Second  int
	// Versioned reports that the file has the member "version": 1.
	Versioned bool
}

// hookEvent is an event of a client.
type hookEvent struct {
	Name string
	// Matcher selects tools by their names. It is empty for all tools.
	Matcher string
}

// HookCommand is the command that a client starts for its hooks.
type HookCommand struct {
	// Program is the absolute path of the program.
	Program string
	// Flags follow the client and the event.
	Flags []string
}

// hookSeconds is the time limit of a hook in the configuration. Guideway itself answers
// within two seconds, with an error if it must.
const hookSeconds = 10

// HookClients returns the clients with hooks in the order of lists.
func HookClients() []HookClient { return slices.Clone(readClients().HookClients) }

// FindHookClient returns the client with hooks that a name or alias refers to.
func FindHookClient(name string) (HookClient, error) {
	id := plainName(name)
	if c, err := Find(name); err == nil {
		id = plainName(c.ID)
	}
	var known []string
	for _, c := range HookClients() {
		if id == plainName(c.ID) || id == plainName(c.Title) {
			return c, nil
		}
		known = append(known, c.ID)
	}
	return HookClient{}, guideway.Errorf(guideway.CodeNotFound, "Guideway has no hooks for the client %q (known: %s)", name, strings.Join(known, ", ")).
		WithFix("guideway install %s --hooks", known[0])
}

// Events returns the names of the events that the client reports to Guideway.
func (c HookClient) Events() []string {
	var names []string
	for _, e := range c.Reports {
		names = append(names, e.Name)
	}
	return names
}

// Locate returns the path of the configuration of the hooks.
func (c HookClient) Locate(env Env, scope Scope) (string, error) {
	if scope == ScopeProject {
		return env.joinPath(append([]string{env.Dir}, strings.Split(c.Project, "/")...)...), nil
	}
	if env.Home == "" {
		return "", guideway.Errorf(guideway.CodeInvalid, "the home directory is unknown (%s is not set)", env.homeVar()).WithFix("set %s", env.homeVar())
	}
	return env.joinPath(env.expandPath(c.Dir), c.File), nil
}

// newElement returns the element that starts the command at an event: the command and its
// arguments for Copilot CLI, the command as a text for Cursor, and for the other clients a
// group of commands with the tools that they are for.
func (c HookClient) newElement(event hookEvent, command HookCommand, goos string) any {
	switch c.Element {
	case "program":
		return map[string]any{"type": "command", "exec": command.Program, "args": command.args(c.ID, event.Name), "timeoutSec": hookSeconds}
	case "command":
		return map[string]any{"command": command.shellText(c.ID, event.Name, goos), "timeout": hookSeconds}
	}
	group := map[string]any{"hooks": []any{map[string]any{
		"type": "command", "command": command.shellText(c.ID, event.Name, goos), "timeout": hookSeconds * c.Second,
	}}}
	if event.Matcher != "" {
		group["matcher"] = event.Matcher
	}
	return group
}

// hookWord is the subcommand that identifies the hooks of Guideway.
const hookWord = "client-hook"

func (c HookCommand) args(client, event string) []string {
	return append([]string{hookWord, client, event}, c.Flags...)
}

// shellText returns the command as a text for a shell.
func (c HookCommand) shellText(client, event, goos string) string {
	program := c.Program
	if goos == "windows" {
		program = strings.ReplaceAll(program, `\`, "/") // every shell on Windows accepts slashes, but not every shell accepts backslashes
	}
	words := append([]string{program}, c.args(client, event)...)
	for i, word := range words {
		words[i] = quoteWord(word, goos)
	}
	return strings.Join(words, " ")
}

// quoteWord quotes a word for a shell if it has special characters.
func quoteWord(word, goos string) string {
	switch {
	case word != "" && !strings.ContainsFunc(word, isSpecial):
		return word
	case goos == "windows":
		return `"` + word + `"`
	default:
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
}

// isSpecial reports whether a character can have a meaning for a shell.
func isSpecial(r rune) bool {
	return !strings.ContainsRune("-_./:=@%+,", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// PlanHooks returns the change that adds the hooks to f, or updates them. It writes nothing.
func PlanHooks(env Env, c HookClient, command HookCommand, f File) (Change, error) {
	change := c.newChange(f)
	found, err := c.hasHooks(f.Content)
	if err == nil {
		change.After, err = c.putHooks(f.Content, command, env.GOOS)
	}
	if err != nil {
		return Change{}, c.editError(f.Path, err)
	}
	change.Action, change.Backup = ActionInstalled, f.Exists
	if found {
		change.Action = ActionUpdated
	}
	if f.Exists && bytes.Equal(change.After, f.Content) {
		change.Action, change.Backup = ActionNone, false
	}
	return change, nil
}

// PlanHooksUndo returns the change that removes the hooks from f. If nothing else has changed
// since they were added, the result is the earlier content, byte for byte, also if the hooks
// start a program at an earlier path.
func PlanHooksUndo(env Env, c HookClient, f File) (Change, error) {
	change := c.newChange(f)
	change.Action, change.After = ActionAbsent, f.Content
	found, err := c.hasHooks(f.Content)
	if err != nil {
		return Change{}, c.editError(f.Path, err)
	}
	if !found {
		return change, nil
	}
	change.Action = ActionRemoved
	state := f.Content
	for _, backup := range slices.Backward(f.Backups) {
		if !c.isResultOf(backup.Content, state, env.GOOS) {
			break
		}
		state, change.Consumed = backup.Content, append(change.Consumed, backup)
	}
	if still, err := c.hasHooks(state); err == nil && !still {
		change.After = state
		return change, nil
	}
	if c.isResultOf(nil, state, env.GOOS) {
		change.After, change.Delete = nil, true // the file did not exist
		return change, nil
	}
	change.Backup, change.Consumed = true, nil
	if change.After, err = c.removeHooks(f.Content, true); err != nil {
		return Change{}, c.editError(f.Path, err)
	}
	return change, nil
}

// isResultOf reports whether state equals before with the hooks of this program added, as
// state contains them.
func (c HookClient) isResultOf(before, state []byte, goos string) bool {
	var command HookCommand
	for _, event := range c.Reports {
		_, _, err := RemoveElements(state, []string{"hooks", event.Name}, func(element json.RawMessage) bool {
			found, ours := c.commandOf(element)
			if ours {
				command = found
			}
			return ours
		})
		if err != nil {
			return false
		}
	}
	made, err := c.putHooks(before, command, goos)
	return err == nil && command.Program != "" && !bytes.Equal(before, state) && bytes.Equal(made, state)
}

func (c HookClient) newChange(f File) Change {
	return Change{Client: Client{ID: c.ID, Title: c.Title}, Path: f.Path, Before: f.Content, Existed: f.Exists}
}

func (c HookClient) editError(path string, err error) error {
	var s *syntaxError
	if errors.As(err, &s) {
		path, err = s.positionIn(path), s
	}
	return guideway.Errorf(guideway.CodeInvalid, "cannot edit %s (%w); the file is unchanged", path, err).
		WithFix("fix the file, then run the same command again")
}

// hasHooks reports whether a file has hooks of Guideway.
func (c HookClient) hasHooks(src []byte) (bool, error) {
	without, err := c.removeHooks(src, false)
	return !bytes.Equal(without, src), err
}

// putHooks returns a file with the hooks, which replace earlier ones of Guideway.
func (c HookClient) putHooks(src []byte, command HookCommand, goos string) ([]byte, error) {
	if same, err := c.hasExactly(src, command, goos); same || err != nil {
		return src, err
	}
	out, err := c.removeHooks(src, false)
	if c.Versioned && err == nil {
		var root map[string]any
		if root, err = decodeJSONC(out); err == nil && root["version"] == nil {
			out, err = SetMember(out, []string{"version"}, json.RawMessage("1"))
		}
	}
	for _, event := range c.Reports {
		if err != nil {
			return nil, err
		}
		var element []byte
		if element, err = jsontext.Marshal(c.newElement(event, command, goos)); err == nil {
			out, err = AddElement(out, []string{"hooks", event.Name}, element)
		}
	}
	return out, err
}

// hasExactly reports whether the hooks of Guideway in a file are those of the command.
func (c HookClient) hasExactly(src []byte, command HookCommand, goos string) (bool, error) {
	for _, event := range c.Reports {
		want, err := jsontext.Marshal(c.newElement(event, command, goos))
		if err != nil {
			return false, err
		}
		var ours []json.RawMessage
		_, _, err = RemoveElements(src, []string{"hooks", event.Name}, func(element json.RawMessage) bool {
			if c.isOurs(element) {
				ours = append(ours, bytes.Clone(element))
				return true
			}
			return false
		})
		if err != nil || len(ours) != 1 || !equalJSON(ours[0], want) {
			return false, err
		}
	}
	return true, nil
}

// equalJSON reports whether two texts are the same JSON value.
func equalJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && jsontext.Equal(x, y)
}

// removeHooks returns a file without the hooks of Guideway. If tidy is set, lists and objects
// that are then empty are removed, too.
func (c HookClient) removeHooks(src []byte, tidy bool) ([]byte, error) {
	root, err := decodeJSONC(src)
	if err != nil {
		return nil, err
	}
	events, _ := root["hooks"].(map[string]any)
	left := len(events)
	for _, name := range slices.Sorted(maps.Keys(events)) {
		list, isList := events[name].([]any)
		if !isList {
			continue
		}
		out, removed, err := RemoveElements(src, []string{"hooks", name}, c.isOurs)
		if err != nil {
			return nil, err
		}
		if tidy && removed > 0 && removed == len(list) {
			left--
			if out, _, err = RemoveMember(out, []string{"hooks", name}); err != nil {
				return nil, err
			}
		}
		src = out
	}
	if tidy && left == 0 && events != nil {
		src, _, err = RemoveMember(src, []string{"hooks"})
	}
	return src, err
}

// isOurs reports whether an element starts only Guideway.
func (c HookClient) isOurs(element json.RawMessage) bool {
	_, ours := c.commandOf(element)
	return ours
}

// commandOf returns the command of an element, and reports whether the element starts only
// Guideway. A command of the user that calls Guideway among other programs does not count.
func (c HookClient) commandOf(element json.RawMessage) (command HookCommand, ours bool) {
	type shellCommand struct {
		Command string `json:"command"`
	}
	var e struct {
		shellCommand

		Exec  string         `json:"exec"`
		Args  []string       `json:"args"`
		Hooks []shellCommand `json:"hooks"`
	}
	if json.Unmarshal(element, &e) != nil {
		return command, false
	}
	if len(e.Args) > 0 {
		return c.commandOfWords(append([]string{e.Exec}, e.Args...))
	}
	if len(e.Hooks) == 0 {
		e.Hooks = []shellCommand{e.shellCommand}
	}
	for _, hook := range e.Hooks {
		if command, ours = c.commandOfWords(splitWords(hook.Command)); !ours {
			return command, false
		}
	}
	return command, true
}

func (c HookClient) commandOfWords(words []string) (command HookCommand, ours bool) {
	const fixed = 4 // program, subcommand, client and event
	if len(words) < fixed || words[1] != hookWord || words[2] != c.ID {
		return command, false
	}
	return HookCommand{Program: words[0], Flags: words[fixed:]}, true
}

// splitWords is the inverse of quoteWord for each word of a command. It returns nil for a
// text that has other special characters, such as several commands.
func splitWords(text string) []string {
	const quote = '\''
	var words []string
	word, open := "", rune(0)
	for _, r := range strings.ReplaceAll(text, `'\''`, "\x00") { // no word contains NUL
		switch {
		case r == 0 && open == quote:
			word += string(quote)
		case open != 0 && r != open:
			word += string(r)
		case open != 0:
			open = 0
		case r == quote || r == '"':
			open = r
		case r == ' ':
			words, word = append(words, word), ""
		case isSpecial(r):
			return nil
		default:
			word += string(r)
		}
	}
	if open != 0 {
		return nil
	}
	return append(words, word)
}
