package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
)

// downloads is an index of releases for environments of envtest with DownloadBinaryAssets,
// which do not read KUBEBUILDER_ASSETS. It has one release, whatever the test asks for by
// default, and its programs run those of KUBEBUILDER_ASSETS.
type downloads struct {
	server *http.Server
	url    string // of the index
}

// indexVariable is where envtest keeps the address of the index. The linker can give it another
// value: sources stay as they are.
const indexVariable = envtestPackage + ".DefaultBinaryAssetsIndexURL"

// release is the version that the index has: that of the real kube-apiserver.
const release = "v1.37.2"

// serveDownloads begins to serve on a port of the loopback interface.
func serveDownloads(ctx context.Context) (*downloads, error) {
	archive, err := archiveOfPrograms()
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving what tests download: %w", err)
	}
	base := "http://" + listener.Addr().String()
	name := fmt.Sprintf("envtest-%s-%s-%s.tar.gz", release, runtime.GOOS, runtime.GOARCH)
	hash := sha512.Sum512(archive)
	index := fmt.Sprintf("releases:\n  %s:\n    %s:\n      hash: %s\n      selfLink: %s/%s\n", release, name, hex.EncodeToString(hash[:]), base, name)
	routes := http.NewServeMux()
	routes.HandleFunc("/index.yaml", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(index)) })
	routes.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	d := &downloads{server: &http.Server{Handler: routes}, url: base + "/index.yaml"}
	go func() { _ = d.server.Serve(listener) }() // until close; a test that finds it gone says so
	return d, nil
}

func (d *downloads) close() { _ = d.server.Close() }

// programs are what an archive has, and what its scripts run. Tests run kubectl without any
// environment, so that its script knows where it is.
func programs() map[string]string {
	const assets = "$KUBEBUILDER_ASSETS/"
	all := map[string]string{"etcd": assets + "etcd", "kube-apiserver": assets + "kube-apiserver", "kubectl": assets + "kubectl"}
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		all["kubectl"] = kubectl
	}
	return all
}

// archiveOfPrograms is an archive of scripts.
func archiveOfPrograms() ([]byte, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for name, program := range programs() {
		script := "#!/bin/sh\nexec \"" + program + "\" \"$@\"\n"
		if err := archive.WriteHeader(&tar.Header{Name: "kubebuilder-envtest/" + name, Mode: 0o755, Size: int64(len(script))}); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(script)); err != nil {
			return nil, err
		}
	}
	err := errors.Join(archive.Close(), compressed.Close())
	return packed.Bytes(), err
}
