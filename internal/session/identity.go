package session

import (
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
)

// uriPrefix begins the resource URI of every document.
const uriPrefix = "guideway://sessions/"

// URI is the address of the document as an MCP resource:
// guideway://sessions/{projectId}/{workflowId}/{id}.
func (r Ref) URI() string {
	return uriPrefix + url.PathEscape(r.Project) + "/" + url.PathEscape(r.Workflow) + "/" + url.PathEscape(r.ID)
}

// ParseURI reads the resource URI of a document. Errors have CodeInvalid.
func ParseURI(uri string) (Name, error) {
	bad := guideway.Errorf(guideway.CodeInvalid, "%q is not the URI of a session document", clip(uri)).
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
	return n, n.check()
}

// Name says which document is meant. Project and Workflow may be left out while
// the rest names one document of the user's alone.
type Name struct {
	Project  string
	Workflow string
	ID       string
	// Here is the project that the caller works in. It decides between
	// documents of several projects, and does not hide those of others.
	Here string
}

// String is the name as people write it.
func (n Name) String() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{n.Project, n.Workflow, n.ID} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// identifier is what ids of documents and workflows look like: ticket numbers,
// slugs, UUIDs, dates with a time. They become parts of addresses and of names
// of exported files, so that a slash is none of theirs.
var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._:-]{0,127}$`) })

// projectID is what ids of projects look like.
var projectID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{12}$`) })

// check refuses ids that cannot be one. What is left out passes, but the id.
func (n Name) check() error {
	if n.Project != "" && !projectID().MatchString(n.Project) {
		return guideway.Errorf(guideway.CodeInvalid, "projectId %q is not the id of a project", clip(n.Project)).
			WithFix("give 12 hexadecimal digits, as in lists of projects, or leave it out")
	}
	if n.Workflow != "" {
		if err := checkID("workflowId", n.Workflow); err != nil {
			return err
		}
	}
	return checkID("sessionId", n.ID)
}

// checkID refuses an id that is none and proposes one that is close to it.
func checkID(field, id string) error {
	if identifier().MatchString(id) && !strings.Contains(id, "..") {
		return nil
	}
	err := guideway.Errorf(guideway.CodeInvalid, "%s %q is not allowed", field, clip(id))
	if id == "" {
		err = guideway.Errorf(guideway.CodeInvalid, "%s is missing", field)
	}
	rule := "up to 128 letters, digits, '.', '_', '-' and ':', with a letter, a digit or '_' first and no '..'"
	if proposal := proposeID(id); proposal != "" {
		return err.WithFix("use %s, such as %q", rule, proposal)
	}
	return err.WithFix("use %s", rule)
}

// foreign are the runs of characters that ids do not have.
var foreign = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_:-]+`) })

// proposeID makes an allowed id of one that is not, or gives "".
func proposeID(id string) string {
	id = strings.Trim(foreign().ReplaceAllString(id[:min(len(id), 128)], "-"), "-:")
	if !identifier().MatchString(id) {
		return ""
	}
	return id
}

// clip shortens what is quoted in a message.
func clip(text string) string {
	const most = 120
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
