package tested

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
)

// CheckSides returns what is wrong with the servers that the flag -sides names.
func CheckSides(sides []string) error {
	servers := []string{Ours, Upstream}
	for _, side := range sides {
		if !slices.Contains(servers, side) {
			return process.WrongFlag("sides", "there is no server %q, only %s", side, strings.Join(servers, " and "))
		}
	}
	if len(sides) == 0 {
		return process.WrongFlag("sides", "name a server: %s", strings.Join(servers, " or "))
	}
	return nil
}

// Program returns the absolute path of our program, which the flag -levelwire names, and
// what is wrong with it.
func Program(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(absolute); err != nil {
		return absolute, process.WrongFlag("levelwire", "%v: build it with `make build`", err)
	}
	return absolute, nil
}
