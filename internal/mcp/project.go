package mcp

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/run/project"
)

// maxPath bounds the path of a project, in characters.
const maxPath = 4096

var (
	projectID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{12}$`) })
	// drivePath matches an absolute Windows path.
	drivePath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]:[\\/]`) })
)

// projectParam returns the parameter with the project of a call.
func projectParam() param {
	return param{name: "project", kind: kindString, maxLength: maxPath, description: "Absolute path or id; default: your project"}
}

// projects finds the projects of clients.
type projects struct {
	project func(context.Context) run.Project
	// catalog holds the definitions of the server, and definitions those of other
	// directories; nil means that all projects have those of the server.
	catalog     Catalog
	definitions Definitions
}

// Definitions provides the definitions of projects.
type Definitions interface {
	// Open returns the definitions that apply in a directory. If the directory does not
	// exist, they are those of the server.
	Open(ctx context.Context, dir string) (*catalog.Snapshot, run.Definitions, error)
}

// openDefinitions returns the definitions for the project of a call. A client with its own
// token gets those of the server: it may belong to a person who must not read the files of
// the server's user. startable is nil for the definitions of the server.
func (p projects) openDefinitions(ctx context.Context, where run.Project) (snap *catalog.Snapshot, startable run.Definitions, err error) {
	if p.definitions == nil || where.Path == "" || auth.TokenLeaseFrom(ctx) != nil || p.project != nil && where.Path == p.project(ctx).Path {
		return p.catalog.Snapshot(), nil, nil
	}
	return p.definitions.Open(ctx, where.Path)
}

// currentProject returns the client's project, if the server knows it: the project of the
// working directory, unless the client has roots and none of them is in that project. Then
// it is the project of the first root that exists.
func (p projects) currentProject(ctx context.Context) run.Project {
	var here run.Project
	if p.project != nil {
		here = p.project(ctx)
	}
	first := here
	for _, dir := range rootsFrom(ctx) {
		found, err := project.Detect(dir)
		switch {
		case err != nil:
		case found.ID == here.ID:
			return here
		case first.ID == here.ID:
			first = run.Project{ID: found.ID, Path: found.Path, Branch: found.Branch, Commit: found.Commit}
		}
	}
	return first
}

// findProject returns the project that a call names by id or path, or the client's current
// project. A path that is not on this machine is used as the project's name.
func (p projects) findProject(ctx context.Context, c call) (run.Project, error) {
	name, here := c.textArg("project"), p.currentProject(ctx)
	switch {
	case name == "" || name == here.ID || name == here.Path:
		return here, nil
	case projectID().MatchString(name):
		return run.Project{ID: name}, nil
	case isForeignPath(name, runtime.GOOS):
		return run.Project{ID: project.ID(name), Path: name}, nil
	case project.IsNetworkPath(name, runtime.GOOS):
		return run.Project{}, badProject(c, fmt.Sprintf("project %q is a path on a network or of a device, which the server does not access", shortenValue(name)),
			"omit project, or pass the project's id, or the path on a drive to which the share is mapped, such as Z:\\project")
	case !filepath.IsAbs(name):
		return run.Project{}, badProject(c, fmt.Sprintf("project %q is neither an absolute path nor a project's id", shortenValue(name)),
			"omit project, or pass the absolute path of your working directory")
	}
	found, err := project.Detect(name)
	if err != nil {
		clean := filepath.Clean(name)
		return run.Project{ID: project.ID(clean), Path: clean}, nil //nolint:nilerr // it is another machine's directory
	}
	return run.Project{ID: found.ID, Path: found.Path, Branch: found.Branch, Commit: found.Commit}, nil
}

// badProject returns an error about the project of a call, with a call without it.
func badProject(c call, message, fix string) error {
	bad := c.badCall("project", message)
	bad.Fix = fix
	delete(bad.Next.Arguments, "project")
	return bad
}

// isForeignPath reports whether a path is a Windows path and system is not Windows. On
// Windows, project.Detect normalizes the spelling of such a path.
func isForeignPath(name, system string) bool {
	return system != "windows" && drivePath().MatchString(name)
}
