package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/levelwire/levelwire/cmd/levelwire/internal/cli"
	"github.com/levelwire/levelwire/internal/atomicfile"
	"github.com/levelwire/levelwire/internal/pki"
)

// userFlags are the flags of the user command.
type userFlags struct {
	dataDir  string
	groups   []string
	lifetime time.Duration
	server   string
	output   string
}

func newUser() *cobra.Command {
	var flags userFlags
	cmd := &cobra.Command{
		Use:   "user NAME",
		Short: "Make a kubeconfig for a further user of a server",
		Long: `Make a kubeconfig by which NAME reaches the server of a data directory. It holds
a client certificate that the server's own authority signs. NAME and the groups
are in the certificate, so the server needs no list of users, and accepts it at
once, without a restart. The server may run meanwhile.

What the user may do is the authorizer's decision; members of system:masters may
do everything. A certificate cannot be withdrawn before it expires: give it the
lifetime that fits. To go on after that, make the file again.`,
		Example: `  levelwire user jane --groups dev,oncall
  levelwire user robot --groups ci --lifetime 12h --output - | ssh build 'cat > ~/.kube/config'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("%d arguments instead of one, the NAME of the user (see '%s --help')", len(args), cmd.CommandPath()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.dataDir, "data-dir", "levelwire-data", "data directory of the server")
	f.StringSliceVar(&flags.groups, "groups", nil, "groups of the user")
	f.DurationVar(&flags.lifetime, "lifetime", 365*24*time.Hour, "how long the certificate is valid")
	f.StringVar(&flags.server, "server", "", "URL by which the user reaches the server (default: that in the data directory's admin.kubeconfig)")
	f.StringVarP(&flags.output, "output", "o", "", "file to write, or - for standard output (default NAME.kubeconfig)")
	return cmd
}

func (f *userFlags) run(cmd *cobra.Command, name string) error {
	if err := f.check(name); err != nil {
		return cli.Usage(err)
	}
	authority, err := f.authority()
	if err != nil {
		return err
	}
	cluster, err := f.cluster()
	if err != nil {
		return err
	}
	pair, err := authority.IssueClient(name, f.groups, f.lifetime)
	if err != nil {
		return err
	}
	data, err := pki.Kubeconfig(cluster.Server, name, cluster.CertificateAuthorityData, pair)
	if err != nil {
		return err
	}
	if f.output == "-" {
		_, err := cmd.OutOrStdout().Write(data)
		return err
	}
	path, err := f.write(name, data)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s, until %s\n\n  export KUBECONFIG=%s\n", describe(name, f.groups), pair.Leaf.NotAfter.Format(time.DateOnly), cli.ShellQuote(path))
	return nil
}

// describe says which user the file authenticates.
func describe(name string, groups []string) string {
	if len(groups) == 0 {
		return name + ", in no group"
	}
	return name + " of " + strings.Join(groups, ", ")
}

// check refuses what cannot be meant.
func (f *userFlags) check(name string) error {
	if err := checkName("the name", name); err != nil {
		return err
	}
	if name == "system:anonymous" {
		return errors.New("system:anonymous is the user without credentials: choose another name")
	}
	for _, group := range f.groups {
		if err := checkName("the group", group); err != nil {
			return fmt.Errorf("--groups: %w", err)
		}
		if group == "system:unauthenticated" {
			return errors.New("--groups: system:unauthenticated is for users without credentials")
		}
	}
	if f.lifetime <= 0 {
		return fmt.Errorf("--lifetime %s is not in the future", f.lifetime)
	}
	if f.output == "" && strings.ContainsAny(name, `/\`) {
		return fmt.Errorf("the name %q is not one of a file: say by --output which file to write", name)
	}
	return nil
}

func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s is empty", what)
	case strings.Contains(name, ","):
		return fmt.Errorf("%s %q has a comma: make one kubeconfig for each user, and separate groups by --groups a,b", what, name)
	case strings.TrimSpace(name) != name, strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%s %q begins or ends with a space, or has a control character", what, name)
	}
	return nil
}

// authority returns the server's own authority.
func (f *userFlags) authority() (*pki.Authority, error) {
	authority, err := pki.LoadAuthority(filepath.Join(f.dataDir, "pki"), time.Now)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--data-dir %s: no server has been started there (%w): start `levelwire up` or `levelwire serve` first, or name its data directory", f.dataDir, err)
	}
	return authority, err
}

// cluster returns how the administrator reaches the server, which is how the user does.
func (f *userFlags) cluster() (*clientcmdapi.Cluster, error) {
	path := filepath.Join(f.dataDir, "admin.kubeconfig")
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("the administrator's kubeconfig has the server's address: %w", err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil, fmt.Errorf("%s names no server: remove it, and start the server again", path)
	}
	cluster := config.Clusters[current.Cluster]
	if f.server != "" {
		cluster.Server = f.server
	}
	return cluster, nil
}

// write writes the kubeconfig, which replaces only another one of the same user.
func (f *userFlags) write(name string, data []byte) (string, error) {
	path := f.output
	if path == "" {
		path = name + ".kubeconfig"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(path); err == nil {
		there, err := clientcmd.LoadFromFile(path)
		if err != nil || !slices.Equal(users(there), []string{name}) {
			return "", fmt.Errorf("%s exists and is not a kubeconfig of %s: remove it, or choose another file by --output", path, name)
		}
	}
	return path, atomicfile.Write(path, data, 0o600)
}

// users returns the names of the users in a kubeconfig.
func users(config *clientcmdapi.Config) []string {
	var names []string
	for name := range config.AuthInfos {
		names = append(names, name)
	}
	return names
}
