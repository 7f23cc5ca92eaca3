package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// fetch gets a suite's module and those beside it with the go command, and copies them
// where they can be written to: tests write next to their sources, and a module is its
// own main module only outside of the module cache. It returns the folder of the module.
func (r *runner) fetch(ctx context.Context, s *suite) (folder string, err error) {
	outer := filepath.Join(r.work, "source", s.Name)
	if err := errors.Join(os.RemoveAll(outer), os.MkdirAll(outer, 0o755)); err != nil {
		return "", err
	}
	// What the go command fetches for it is no business of the module around it, which is ours.
	if err := os.WriteFile(filepath.Join(outer, "go.mod"), []byte("module "+s.Name+"\n"), 0o644); err != nil {
		return "", err
	}
	folder = filepath.Join(outer, "around", "module")
	if err := r.fetchModule(ctx, outer, s.Module, s.Version, folder); err != nil {
		return "", err
	}
	for _, b := range s.Beside {
		if err := r.fetchModule(ctx, outer, b.Module, b.Version, filepath.Join(folder, filepath.FromSlash(b.Folder))); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// fetchModule copies a module to a folder. The go command runs in another one.
func (r *runner) fetchModule(ctx context.Context, from, module, version, folder string) error {
	at := module + "@" + version
	output, failed := r.goCommand(ctx, from, "mod", "download", "-json", at)
	var downloaded struct{ Dir, Error string }
	if err := json.Unmarshal(output, &downloaded); err != nil {
		if failed == nil {
			failed = err
		}
		return fmt.Errorf("go mod download %s: %w", at, failed)
	}
	if downloaded.Error != "" {
		return fmt.Errorf("%s\n  %s", downloaded.Error, whatToDo(downloaded.Error))
	}
	return copyTree(downloaded.Dir, folder)
}

// whatToDo is the next step after an error of the go command.
func whatToDo(said string) string {
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(said, part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("no space left", "disk quota exceeded"):
		return "The disk is full: make room, `go clean -cache` for example, and run it again."
	case has("404 Not Found", "410 Gone", "403 Forbidden", "unknown revision", "no matching versions", "not found", "unrecognized import path", ".info: no such file"):
		return "The place that GOPROXY names (go env GOPROXY) does not have this module at this version: name another one in suites.yaml, or another GOPROXY."
	case has("dial tcp", "no such host", "connection refused", "i/o timeout", "TLS handshake", "network is unreachable", "module lookup disabled"):
		return "The modules cannot be reached: connect this machine to a network, or set GOPROXY (go env GOPROXY) to a place that it reaches."
	case has("requires go >=", "running go "):
		return "It needs a newer Go: install that, or name an older version of it in suites.yaml."
	case has("checksum mismatch", "SECURITY ERROR"):
		return "What was fetched is not what others were given: do not go on, and ask who runs the GOPROXY."
	}
	return "With -keep (make test-suites SUITES_FLAGS=-keep) the folder that is named stays, to look at."
}

// goCommand runs the go command for a suite and returns its standard output. The error has
// what it said.
func (r *runner) goCommand(ctx context.Context, folder string, args ...string) ([]byte, error) {
	cmd := r.command(ctx, folder, "go", args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := r.runToEnd(cmd); err != nil {
		return out.Bytes(), fmt.Errorf("%w\n%s", err, strings.TrimSpace(lastLines(said.String(), 20)))
	}
	return out.Bytes(), nil
}

// lastLines returns the end of a text, without what the go command says about its downloads.
func lastLines(text string, most int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "go: downloading ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-most):], "")
}

// copyTree copies files and folders, so that their owner may write to them.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() { // an archive of a module has nothing else
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, info.Mode().Perm()|0o200)
	})
}
