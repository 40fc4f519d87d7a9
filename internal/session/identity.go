package session

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
)

// uriPrefix is the start of the resource URI of every document.
const uriPrefix = "guideway://sessions/"

// URI returns the address of the document as an MCP resource:
// guideway://sessions/{projectId}/{workflowId}/{id}.
func (r Ref) URI() string {
	return uriPrefix + url.PathEscape(r.Project) + "/" + url.PathEscape(r.Workflow) + "/" + url.PathEscape(r.ID)
}

// ParseURI parses the resource URI of a document. Errors have CodeInvalid.
func ParseURI(uri string) (Name, error) {
	bad := guideway.Errorf(guideway.CodeInvalid, "%q is not the URI of a session document", clipText(uri)).
		WithFix("use %s{projectId}/{workflowId}/{sessionId}", uriPrefix)
	rest, ok := strings.CutPrefix(uri, uriPrefix)
	if !ok {
		return Name{}, bad
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 {
		return Name{}, bad
	}
	for i, part := range parts {
		unescaped, err := url.PathUnescape(part)
		if err != nil || unescaped == "" {
			return Name{}, bad
		}
		parts[i] = unescaped
	}
	n := Name{Project: parts[0], Workflow: parts[1], ID: parts[2]}
	return n, n.validate()
}

// Name identifies a document. Project and Workflow may be empty if the other fields
// identify one document of the user.
type Name struct {
	Project  string
	Workflow string
	ID       string
	// Here is the caller's project. If documents of several projects match, those of the
	// caller's project are preferred.
	Here string
}

// String returns the name as people write it.
func (n Name) String() string {
	parts := []string{n.Project, n.Workflow, n.ID}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
}

// identifier matches ids of documents and workflows: ticket numbers, slugs, UUIDs, dates
// with a time. They become parts of URIs and of names of exported files, so they cannot
// contain a slash.
var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._:-]{0,127}$`) })

// projectID matches ids of projects.
var projectID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{12}$`) })

// validate returns an error for an invalid id. Project and Workflow may be empty.
func (n Name) validate() error {
	if n.Project != "" && !projectID().MatchString(n.Project) {
		return guideway.Errorf(guideway.CodeInvalid, "projectId %q is not a project id", clipText(n.Project)).
			WithFix("use 12 hexadecimal digits in lower case, as guideway sessions list prints them, or omit projectId")
	}
	if n.Workflow != "" {
		if err := checkID("workflowId", n.Workflow); err != nil {
			return err
		}
	}
	return checkID("sessionId", n.ID)
}

// checkID refuses an invalid id and proposes a similar valid one.
func checkID(field, id string) error {
	if identifier().MatchString(id) && !strings.Contains(id, "..") {
		return nil
	}
	err := guideway.Errorf(guideway.CodeInvalid, "%s %q is not a valid id", field, clipText(id))
	if id == "" {
		err = guideway.Errorf(guideway.CodeInvalid, "%s is missing", field)
	}
	rule := "up to 128 letters, digits, '.', '_', '-' and ':', with a letter, a digit or '_' first and no '..'"
	if proposal := proposeID(id); proposal != "" {
		return err.WithFix("use %s, such as %q", rule, proposal)
	}
	return err.WithFix("use %s", rule)
}

// foreign matches the characters that proposeID replaces: those that ids cannot contain,
// and dots.
var foreign = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_:-]+`) })

// proposeID returns a valid id similar to an invalid one, or "".
func proposeID(id string) string {
	id = strings.Trim(foreign().ReplaceAllString(id[:min(len(id), 128)], "-"), "-:")
	if !identifier().MatchString(id) {
		return ""
	}
	return id
}

// clipText shortens text that is quoted in a message.
func clipText(text string) string { return textpart.Shorten(text, 120) }
