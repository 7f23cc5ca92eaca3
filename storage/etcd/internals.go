package etcd

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	etcdversion "go.etcd.io/etcd/api/v3/version"
)

// An embedded member takes three shortcuts that etcd's API does not promise:
//
//   - walsegments.go prepares the files of the write-ahead log under the names by
//     which etcd opens them next, and sets their length by a variable of etcd's.
//   - residentset.go drops pages of the database's file, which bbolt maps, and
//     relies on an open read transaction to keep the mapping where it is.
//   - local.go, localwatch.go and history.go read the member's store itself
//     instead of its API, localborrow.go and history.go even by the keys of its database.
//
// They were verified by reading the releases below. At start each is used only if
// the program has been linked with such a release, and with no fork of it; the first
// two also look whether they find the files and the mapping that they expect. A
// shortcut that is not to be relied on is left out, with one line in the log; all
// that is lost is speed.
const (
	// verifiedEtcd is the minor version of etcd whose internals are known. etcd's
	// patch releases only fix bugs.
	verifiedEtcd = "3.7"
	// verifiedBolt is the same for bbolt, which etcd requires and a program's go.mod
	// may raise on its own.
	verifiedBolt = "v1.5"

	serverModule = "go.etcd.io/etcd/server/v3"
	apiModule    = "go.etcd.io/etcd/api/v3"
	boltModule   = "go.etcd.io/bbolt"
)

// versions are the releases that a program has been linked with.
type versions struct {
	etcd string
	bolt string // empty if the build information has no modules, as that of tests has none
	// replaced says which of the modules go.mod replaces by another one, and by what:
	// it may be a fork, whatever its version.
	replaced string
}

// linkedVersions returns the releases that this program has been linked with.
func linkedVersions() versions {
	info, _ := debug.ReadBuildInfo()
	return versionsOf(info)
}

// versionsOf returns the releases that a program with the given build information,
// which may be nil, has been linked with. Without modules etcd's version is that of
// its own constant; bbolt's constant lags behind.
func versionsOf(info *debug.BuildInfo) versions {
	linked := versions{etcd: etcdversion.Version}
	if info == nil {
		return linked
	}
	for _, module := range info.Deps {
		switch module.Path {
		case serverModule:
			linked.etcd = strings.TrimPrefix(module.Version, "v")
		case boltModule:
			linked.bolt = module.Version
		case apiModule:
		default:
			continue
		}
		if r := module.Replace; r != nil {
			linked.replaced = strings.TrimSpace(fmt.Sprintf("%s => %s %s", module.Path, r.Path, r.Version))
		}
	}
	return linked
}

// verify says which release the shortcuts were not verified with, if any.
func (v versions) verify() error {
	switch {
	case v.replaced != "":
		return fmt.Errorf("this program is linked with another module in place of etcd's (%s), and the internals of that are not known", v.replaced)
	case !isRelease(v.etcd, verifiedEtcd):
		return fmt.Errorf("this program is linked with etcd %q, and the internals of %s are known", v.etcd, verifiedEtcd)
	case v.bolt != "" && !isRelease(v.bolt, verifiedBolt):
		return fmt.Errorf("this program is linked with bbolt %q, and the internals of %s are known", v.bolt, verifiedBolt)
	}
	return nil
}

// isRelease reports whether a version is a release of a minor version, and no
// pre-release.
func isRelease(version, minor string) bool {
	patch, ok := strings.CutPrefix(version, minor+".")
	return ok && patch != "" && strings.Trim(patch, "0123456789") == ""
}

// usesInternals decides whether a member may take the shortcuts.
func (c EmbedConfig) usesInternals(logger *slog.Logger) bool {
	if c.PublicAPIOnly {
		return false
	}
	linked := c.linked
	if linked == nil {
		linked = linkedVersions
	}
	if err := linked().verify(); err != nil {
		logger.Warn("the embedded etcd is used through its API only: reads, writes and memory cost more", "reason", err)
		return false
	}
	return true
}
