package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDownloadedProgramsRunThoseOfTheSide: what a test downloads runs what KUBEBUILDER_ASSETS has, and
// kubectl without any environment, as tests run it.
func TestDownloadedProgramsRunThoseOfTheSide(t *testing.T) {
	dir := t.TempDir()
	script := func(path string) {
		t.Helper()
		text := "#!/bin/sh\necho " + filepath.Base(filepath.Dir(path)) + " $0 \"$@\"\n"
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	assets, path := filepath.Join(dir, "assets"), filepath.Join(dir, "path")
	script(filepath.Join(assets, "etcd"))
	script(filepath.Join(assets, "kube-apiserver"))
	script(filepath.Join(path, "kubectl"))
	t.Setenv("PATH", path+":"+os.Getenv("PATH"))

	downloaded := filepath.Join(dir, "downloaded")
	unpack(t, downloaded)
	for name, c := range map[string]struct {
		environment []string
		want        string
	}{
		"etcd":           {[]string{"KUBEBUILDER_ASSETS=" + assets}, "assets"},
		"kube-apiserver": {[]string{"KUBEBUILDER_ASSETS=" + assets}, "assets"},
		"kubectl":        {[]string{"KUBECONFIG=x"}, "path"},
	} {
		cmd := exec.Command(filepath.Join(downloaded, name), "--a flag")
		cmd.Env = c.environment
		said, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(said), c.want+" ") || !strings.HasSuffix(string(said), " --a flag\n") {
			t.Errorf("%s says %q (%v), want that of %s, with its flag", name, said, err, c.want)
		}
	}
}

// unpack unpacks the archive that tests download.
func unpack(t *testing.T, folder string) {
	t.Helper()
	packed, err := archiveOfPrograms()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, filepath.Base(header.Name))
		if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(file, content, header.FileInfo().Mode())); err != nil {
			t.Fatal(err)
		}
	}
}
