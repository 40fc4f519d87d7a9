package mcpserver

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/guideway-dev/guideway/internal/project"
	"github.com/guideway-dev/guideway/internal/run"
)

// maxPath bounds the path of a project, in characters.
const maxPath = 4096

var (
	projectID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{12}$`) })
	// drivePath is an absolute path of a client whose system is not ours.
	drivePath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]:[\\/]`) })
)

// projectParam names the project that a call is about.
func projectParam() param {
	return param{name: "project", kind: kindString, maxLength: maxPath, description: "Absolute path or id, if not the server's directory"}
}

// places knows where clients work.
type places struct {
	project func(context.Context) run.Project
}

// here gives the project that the client is in, as far as the server knows.
func (p places) here(ctx context.Context) run.Project {
	if p.project == nil {
		return run.Project{}
	}
	return p.project(ctx)
}

// named gives the project that a call names by its id or path, or the one
// that the client is in. A path that is not on this machine is a project by its
// name.
func (p places) named(ctx context.Context, t *tool, in arguments) (run.Project, error) {
	name, here := in.text("project"), p.here(ctx)
	switch {
	case name == "" || name == here.ID || name == here.Path:
		return here, nil
	case projectID().MatchString(name):
		return run.Project{ID: name}, nil
	case drivePath().MatchString(name):
		return run.Project{ID: project.ID(name), Path: name}, nil
	case !filepath.IsAbs(name):
		bad := t.badCall(in, "project", fmt.Sprintf("%q is neither an absolute path nor a project's id", shorten(name)))
		bad.Fix = "leave it out, or give the absolute path of the directory that you work in"
		delete(bad.Next.Arguments, "project")
		return run.Project{}, bad
	}
	found, err := project.Detect(name)
	if err != nil {
		clean := filepath.Clean(name)
		return run.Project{ID: project.ID(clean), Path: clean}, nil //nolint:nilerr // it is another machine's directory
	}
	return run.Project{ID: found.ID, Path: found.Path, Branch: found.Branch, Commit: found.Commit}, nil
}
