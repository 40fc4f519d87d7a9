package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// maxDepth is the number of levels of subdirectories whose files are exported, and
// maxListing bounds the bytes of the listing of a commit.
const (
	maxDepth   = 6
	maxListing = 64 << 20
)

// export takes the documents out of a commit.
type export struct {
	git    program
	limits mirror.Limits
	stage  *mirror.Stage
	found  []entry
}

// entry is a file in a commit.
type entry struct {
	name, mode, hash string
	// size is negative for a submodule, and for a file that the fetch omitted because it is
	// too large.
	size int64
}

// exportDir adds the documents below a directory of a commit. If dir is "", it uses the first
// standard directory that exists; see Options.Path.
func (e *export) exportDir(ctx context.Context, commit, dir string) error {
	dirs := []string{dir}
	if dir == "" {
		dirs = []string{"workflows", ".guideway/workflows", ""}
	}
	var queries []string
	for _, d := range dirs {
		queries = append(queries, commit+":"+d)
	}
	trees, err := e.git.lookUp(ctx, "tree", queries)
	if err != nil {
		return err
	}
	for _, tree := range trees {
		if tree == "" {
			continue
		}
		if err := e.git.runCommand(ctx, "", e.readListing, "ls-tree", "-r", "-z", "--long", "--full-tree", tree); err != nil {
			return err
		}
		return e.addFiles(ctx)
	}
	return guideway.Errorf(guideway.CodeNotFound, "the repository has no directory %q at commit %s", dir, commit[:12]).
		WithFix("set \"path\" of the source to a directory of the repository")
}

// lookUp returns the hashes of the objects of a type with the given names. The hash is ""
// for a name without an object of this type.
func (p program) lookUp(ctx context.Context, kind string, names []string) (hashes []string, err error) {
	pattern := regexp.MustCompile(`^([0-9a-f]{40}) ` + kind + `\n$`)
	err = p.runCommand(ctx, strings.Join(names, "\n")+"\n", func(out *bufio.Reader) error {
		for range names {
			line, err := out.ReadString('\n')
			if err != nil {
				return err
			}
			hash := ""
			if m := pattern.FindStringSubmatch(line); m != nil {
				hash = m[1]
			}
			hashes = append(hashes, hash)
		}
		return nil
	}, "cat-file", "--batch-check=%(objectname) %(objecttype)")
	return hashes, err
}

// readListing reads the output of ls-tree and collects the documents in it.
func (e *export) readListing(out *bufio.Reader) error {
	listing := bufio.NewReader(io.LimitReader(out, maxListing))
	total := 0
	for {
		text, err := listing.ReadString(0)
		if total += len(text); total >= maxListing {
			return fmt.Errorf("%w: its file names take more than %d bytes", mirror.ErrTooMuch, maxListing)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		meta, name, _ := strings.Cut(strings.TrimSuffix(text, "\x00"), "\t")
		fields := strings.Fields(meta)
		if len(fields) != 4 {
			return fmt.Errorf("the listing of the commit cannot be parsed")
		}
		size, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			size = -1
		}
		if err := e.collectEntry(entry{name: name, mode: fields[0], hash: fields[2], size: size}); err != nil {
			return err
		}
	}
}

// collectEntry collects an entry if it is a document, and records why an entry is refused.
func (e *export) collectEntry(f entry) error {
	parts := strings.Split(f.name, "/")
	for _, part := range parts[:len(parts)-1] {
		if part == "node_modules" || part == "testdata" || strings.HasPrefix(part, ".") && mirror.IsSafe(part) {
			return nil
		}
	}
	if len(parts) > maxDepth+1 {
		return nil
	}
	if f.mode == "160000" {
		e.stage.AddDiagnostic(guideway.Diagnostic{
			Severity: guideway.SeverityWarning, Code: "git-submodule", File: f.name,
			Message: "submodules are not fetched", Fix: "configure the repository of the submodule as a separate source",
		})
		return nil
	}
	// A hand-written tree can have slashes and dots in its names.
	bad := !mirror.IsSafe(f.name)
	if !catalog.IsDefinitionFile(f.name) && !(bad && catalog.IsDefinitionFile(path.Base(f.name))) {
		return nil
	}
	switch {
	case bad:
		e.stage.Reject(f.name, "file-name", "the name is not a valid file name on every system", "rename the file")
	case f.mode == "120000":
		e.stage.Reject(f.name, "file-link", "links in a repository are not followed", "replace the link with a copy of its target")
	case !strings.HasPrefix(f.mode, "100"):
		e.stage.Reject(f.name, "file-special", "the entry is not a regular file", "replace the entry with a regular file")
	case f.size < 0:
		e.stage.Reject(f.name, "file-too-large", fmt.Sprintf("the file is larger than %d bytes", e.limits.FileBytes), "split the document, or raise maxFileSize of the source (at most 1 MiB)")
	case f.size > e.limits.FileBytes:
		e.stage.Reject(f.name, "file-too-large", fmt.Sprintf("the file has %d bytes; the limit is %d", f.size, e.limits.FileBytes), "split the document, or raise maxFileSize of the source (at most 1 MiB)")
	case len(e.found) >= e.limits.Files:
		return guideway.Errorf(guideway.CodeTooLarge, "the repository has more than %d documents", e.limits.Files).
			WithFix("set \"path\" of the source to a directory of the repository, or raise maxFiles of the source")
	default:
		e.found = append(e.found, f)
	}
	return nil
}

// addFiles reads the documents and adds them to the stage.
func (e *export) addFiles(ctx context.Context) error {
	var hashes strings.Builder
	for _, f := range e.found {
		hashes.WriteString(f.hash + "\n")
	}
	return e.git.runCommand(ctx, hashes.String(), func(out *bufio.Reader) error {
		for _, f := range e.found {
			header, err := out.ReadString('\n')
			if err != nil {
				return err
			}
			if header != fmt.Sprintf("%s blob %d\n", f.hash, f.size) {
				return fmt.Errorf("the file %q of the commit cannot be read", f.name)
			}
			content := io.LimitReader(out, f.size)
			if err := e.stage.Add(f.name, e.limits.FileBytes, content); err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, content); err != nil {
				return err
			}
			if _, err := out.Discard(1); err != nil {
				return err
			}
		}
		return nil
	}, "cat-file", "--batch", "--buffer")
}
