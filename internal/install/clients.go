package install

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
)

// Scope is the scope of a configuration.
type Scope string

// The scopes.
const (
	// ScopeUser is the configuration for all projects of the user.
	ScopeUser Scope = "user"
	// ScopeProject is the file in the project's directory.
	ScopeProject Scope = "project"
)

// Client is an MCP client and the location of its configuration.
type Client struct {
	// ID is the name on the command line, Title the name for people.
	ID, Title string
	// Aliases are other names of the client.
	Aliases []string
	// Project is the path of the file in a project, with slashes. It is empty if the client
	// has no project configuration.
	Project string

	declaration
}

// declaration is the part of a client that only this package reads.
type declaration struct {
	Form format
	// Dir is the directory of the user's file, as expandPath reads it, and File its name. They
	// are empty if the client has a place of its own (see locateUser).
	Dir, File string
	// Restart is the action after which the client uses the change. ProjectRestart is the
	// action for a file in a project, if it differs.
	Restart, ProjectRestart string
	// Reference is the form in which an entry refers to the environment variable with the
	// token of a URL. It is empty if the client cannot refer to one.
	Reference string
	// Bridge reports that the client only starts programs, and reaches a URL through
	// guideway connect.
	Bridge bool
	// NewFile is a note for a file of the user that did not exist.
	NewFile string
	// Commented reports that the client uses the file with the same name and a final c
	// (JSON with comments) instead, if that file exists.
	Commented bool
}

// Next returns the action after which the client uses a change of the named entry in a scope.
func (c Client) Next(scope Scope, name string) string {
	if scope == ScopeProject && c.ProjectRestart != "" {
		return strings.ReplaceAll(c.ProjectRestart, "NAME", name)
	}
	return c.Restart
}

// NewFileNote returns what a person must know about a new file in a scope, or "".
func (c Client) NewFileNote(scope Scope) string {
	if scope == ScopeProject {
		return ""
	}
	return c.NewFile
}

// Location is a configuration file and the paths that exist if the client is installed.
type Location struct {
	Path    string
	Markers []string
}

//go:embed clients.jsonc
var clientsJSON []byte

// clientTable is the content of clients.jsonc.
type clientTable struct {
	Clients       []Client
	HookClients   []HookClient
	ManualClients []manualClient
}

var readClients = sync.OnceValue(func() (table clientTable) {
	_ = json.Unmarshal(standardizeJSON(clientsJSON), &table) // a test decodes the file, which is a part of the program
	return table
})

// Clients returns the supported clients in the order of lists.
func Clients() []Client { return slices.Clone(readClients().Clients) }

// Find returns the client with a name or alias. Case, spaces, dashes and underscores are
// ignored.
func Find(name string) (Client, error) {
	want := plainName(name)
	var known []string
	for _, c := range Clients() {
		for _, n := range append([]string{c.ID, c.Title}, c.Aliases...) {
			if want == plainName(n) {
				return c, nil
			}
		}
		known = append(known, c.ID)
	}
	err := guideway.Errorf(guideway.CodeNotFound, "unknown client %q (known: %s)", name, strings.Join(known, ", "))
	if near := spelling.Closest(name, known); near != "" {
		return Client{}, err.WithFix("guideway install %s", near)
	}
	return Client{}, err.WithFix("guideway install")
}

func plainName(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

// syntaxError is an error in a file and its position. The line or the column is 0 if it is
// unknown.
type syntaxError struct {
	line, column int
	message      string
}

func (s *syntaxError) Error() string { return s.message }

// withPosition returns a syntax error with its position before the message. It returns other
// errors unchanged.
func withPosition(err error) error {
	var s *syntaxError
	if !errors.As(err, &s) || s.line == 0 {
		return err
	}
	if s.column == 0 {
		return fmt.Errorf("line %d: %w", s.line, err)
	}
	return fmt.Errorf("line %d, column %d: %w", s.line, s.column, err)
}

func (s *syntaxError) positionIn(file string) string {
	switch {
	case s.line == 0:
		return file
	case s.column == 0:
		return fmt.Sprintf("%s:%d", file, s.line)
	}
	return fmt.Sprintf("%s:%d:%d", file, s.line, s.column)
}

// manualClient is a client whose file guideway install does not edit, with its documented
// form.
type manualClient struct {
	Title   string
	Aliases []string
	// File is the file of the user, or of the project if the client has only that.
	File string
	// Key is the member of the root that contains the entries. It is empty for Goose, whose
	// entries have another form.
	Key   string
	Shape shape
}

// gooseEntry returns an entry for Goose, which has other member names for the command and
// the variables.
func gooseEntry(name string, e Entry) string {
	f := []field{{"enabled", true}, {"name", name}}
	if e.URL != "" {
		f = append(f, field{"type", "streamable_http"}, field{"uri", e.URL})
		if e.Authorization != "" {
			f = append(f, field{"headers", []field{{authorizationHeader, e.Authorization}}})
		}
	} else {
		f = append(f, field{"type", "stdio"}, field{"cmd", e.Command}, field{"args", e.Args})
		if len(e.Env) > 0 {
			f = append(f, field{"envs", variableFields(e.Env)})
		}
	}
	return strings.TrimSpace(encodeYAML(newNode([]field{{"extensions", []field{{name, f}}}})))
}

// UnsupportedClient returns the error for a client that install cannot edit. Its fix
// contains the entry to paste: in the form of the client if it is known, and else in the
// form that most clients take.
func UnsupportedClient(name string, req Request) error {
	e := Entry{Command: cmp.Or(req.Command, "/path/to/guideway"), Args: req.Args, Env: req.Env}
	if len(e.Args) == 0 {
		e.Args = mcpArgs()
	}
	if req.URL != "" {
		e = Entry{URL: req.URL}
		if req.TokenEnv != "" {
			e.Authorization = "Bearer TOKEN"
		}
	}
	want := plainName(name)
	for _, c := range readClients().ManualClients {
		for _, alias := range c.Aliases {
			if want == alias {
				return guideway.Errorf(guideway.CodeNotFound, "guideway install does not edit the configuration of %s", c.Title).
					WithFix("add this entry to %s (see docs/clients.md):\n%s", c.File, c.entryText(nameOf(req), e))
			}
		}
	}
	_, err := Find(name)
	generic := manualClient{Key: "mcpServers", Shape: shape{Remote: "http", URL: "url", Env: "env"}}
	return guideway.Errorf(guideway.CodeNotFound, "%w", err).
		WithFix("%s; or add this entry, which most clients take (see docs/clients.md):\n%s", guideway.ErrorFix(err), generic.entryText(nameOf(req), e))
}

func (c manualClient) entryText(name string, e Entry) string {
	if c.Key == "" {
		return gooseEntry(name, e)
	}
	return renderSnippet([]field{{c.Key, []field{{name, c.Shape.entryFields(e)}}}})
}
