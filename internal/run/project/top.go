package project

import "path/filepath"

// IsOwned reports whether a directory and the top of its repository, if it is in one, belong
// to the user of this process, or to the owner of the directory like.
func IsOwned(dir, like string) bool {
	names := []string{dir}
	if top := TrustedTop(dir); top != "" {
		names = append(names, top)
	}
	return isOwnedLike(like, names...)
}

// TrustedTop returns the top of the work tree below which a directory is, with symbolic
// links resolved. It returns "" if the directory is a top itself or in no work tree, and if
// the top or its .git belongs to another user than this process and the directory: other
// users of the machine may create a repository in a shared parent directory.
func TrustedTop(dir string) string {
	start, err := resolveDir(dir)
	if err != nil {
		return ""
	}
	repo, top, ok := discoverRepository(start)
	if !ok || top == repo.dir || top == start || !isOwnedLike(start, top, filepath.Join(top, ".git")) {
		return ""
	}
	return top
}
