//go:build linux

// Command etcdmember is one member of an etcd cluster for tests: etcd itself, in the
// version that it is built with, with a disk that can be made slow.
//
//	etcdmember CONFIG
//
// CONFIG is a configuration file of etcd's. The program prints "ready" when the member
// serves, takes commands from its standard input (see slowDisk), and ends, in order, with a
// SIGTERM or at the end of that input, so that no member outlives its test.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "etcdmember:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return errors.New("usage: etcdmember CONFIG")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	disk, err := newSlowDisk()
	if err != nil {
		return err
	}
	config, err := embed.ConfigFromFile(os.Args[1])
	if err != nil {
		return err
	}
	go func() {
		defer stop()
		takeCommands(disk)
	}()
	member, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	select {
	case <-member.Server.ReadyNotify():
		fmt.Println("ready")
	case <-ctx.Done():
	case err := <-member.Err():
		return err
	}
	select {
	case <-ctx.Done():
		disk.setDelay(0)
		member.Close()
		return nil
	case err := <-member.Err():
		return err
	}
}

// takeCommands takes lines such as "fsync 200ms" until there are no more.
func takeCommands(disk *slowDisk) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "fsync ")
		delay, err := time.ParseDuration(text)
		if !ok || err != nil {
			fmt.Fprintf(os.Stderr, "etcdmember: no command: %q\n", lines.Text())
			continue
		}
		disk.setDelay(delay)
	}
}
