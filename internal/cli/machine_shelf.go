package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/definition/machines"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/regularfile"
	bundled "github.com/guideway-dev/guideway/workflows/machines"
)

// machineShelf finds machines: those of all sources of workflows, each in its
// directory "machines". It reads them anew at every call.
type machineShelf struct {
	// dirs are the directories, lowest rank first.
	dirs []catalog.SourceInfo
	// bundled says whether those of the program are there, at the lowest rank.
	bundled bool
	// dir is the working directory.
	dir string
}

var _ driver.Machines = (*machineShelf)(nil)

func (a *app) machineShelf(cfg *config.Config) *machineShelf {
	layout := catalog.Layout{Custom: cfg.Workflows.Paths}
	if cfg.Workflows.User {
		layout.User = cfg.Workflows.UserDir
	}
	if cfg.Workflows.Project {
		layout.Project = a.host.Dir
	}
	s := &machineShelf{bundled: cfg.Workflows.Bundled, dir: a.host.Dir}
	for _, source := range catalog.Standard(layout) {
		info := source.Info()
		info.Location = filepath.Join(info.Location, "machines")
		s.dirs = append(s.dirs, info)
	}
	slices.SortStableFunc(s.dirs, func(a, b catalog.SourceInfo) int { return cmp.Compare(a.Rank, b.Rank) })
	return s
}

// shelved is a machine of a source.
type shelved struct {
	machines.Loaded
	Source string
	// recording reads what is shipped for a demonstration; nil where there is none.
	recording func() ([]byte, error)
}

// demonstration gives what is shipped for a demonstration; CodeNotFound where there
// is nothing.
func (s *shelved) demonstration() ([]byte, error) {
	if s.recording == nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "the machine %q has no recording", s.Claims).
			WithFix("run it with a model: --model openai:NAME, or --model scripted:FILE")
	}
	return s.recording()
}

// all gives the machines that are served, in order of their names, and all that
// does not load.
func (s *machineShelf) all() (served, broken []shelved) {
	byName := map[string]shelved{}
	add := func(source string, fsys fs.FS, prefix string) {
		list, err := machines.Load(fsys, prefix)
		if err != nil {
			return // there is no such directory
		}
		for _, l := range list {
			one := shelved{Loaded: l, Source: source, recording: recordingIn(fsys, l.Claims)}
			if l.Definition == nil {
				broken = append(broken, one)
				continue
			}
			byName[l.Definition.Name] = one
		}
	}
	if s.bundled {
		add("bundled", bundled.FS(), "bundled:machines")
	}
	for _, info := range s.dirs {
		root, err := os.OpenRoot(info.Location)
		if err != nil {
			continue
		}
		add(info.Name, regularfile.In(root), info.Location)
		_ = root.Close()
	}
	for _, one := range byName {
		served = append(served, one)
	}
	slices.SortFunc(served, func(a, b shelved) int { return strings.Compare(a.Definition.Name, b.Definition.Name) })
	return served, broken
}

// recordingIn gives the way to a machine's recording, which is read at once: its
// directory is closed when the demonstration begins.
func recordingIn(fsys fs.FS, name string) func() ([]byte, error) {
	data, err := fs.ReadFile(fsys, name+"/recording.json")
	if err != nil {
		return nil
	}
	return func() ([]byte, error) { return data, nil }
}

// find gives a machine by its name, or by the path of its file or directory.
func (s *machineShelf) find(name string) (*shelved, error) {
	if strings.ContainsAny(name, `/\`) || isDefinitionName(name) {
		return s.open(name)
	}
	served, broken := s.all()
	var near []string
	for i := range served {
		if served[i].Definition.Name == name {
			return &served[i], nil
		}
		if strings.Contains(served[i].Definition.Name, name) {
			near = append(near, served[i].Definition.Name)
		}
	}
	for i := range broken {
		if broken[i].Claims == name {
			return &broken[i], doesNotLoad(name, broken[i].Found[0])
		}
	}
	err := guideway.Errorf(guideway.CodeNotFound, "there is no machine %q", name).WithFix("guideway machine list")
	if len(near) > 0 {
		err = err.WithFix("did you mean %s?", strings.Join(near, " or "))
	}
	return nil, err
}

// open reads the machine of a file or directory.
func (s *machineShelf) open(name string) (*shelved, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "read %s: %w", name, errors.Unwrap(err))
	}
	defer root.Close()
	one := shelved{Loaded: machines.LoadFile(regularfile.In(root), filepath.Dir(name), filepath.Base(path)), Source: "file"}
	if one.Definition == nil {
		return &one, doesNotLoad(name, one.Found[0])
	}
	one.recording = recordingIn(regularfile.In(root), strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	return &one, nil
}

// doesNotLoad tells the first thing that is wrong with a machine.
func doesNotLoad(name string, d guideway.Diagnostic) error {
	where := d.File
	if d.Line > 0 {
		where = fmt.Sprintf("%s:%d", d.File, d.Line)
	}
	err := guideway.Errorf(guideway.CodeInvalidDefinition, "the machine %q does not load: %s: %s", name, where, d.Message)
	err.Fix = d.Fix
	return err
}

// Machine implements driver.Machines.
func (s *machineShelf) Machine(_ context.Context, name string) (*machines.Definition, error) {
	one, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return one.Definition, nil
}
