package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/levelwire/levelwire/client/controller"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/client/leader"
	"github.com/levelwire/levelwire/client/rest"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "greeter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	client, err := rest.FromKubeconfig(kubeconfig, rest.Options{})
	if err != nil {
		return err
	}
	factory := informer.NewFactory(client, informer.Options{Logger: slog.Default()})
	c, err := newController(client, factory)
	if err != nil {
		return err
	}
	elector, err := leader.New(client, leader.Options{Namespace: "default", Name: "greeter", Logger: slog.Default()})
	if err != nil {
		return err
	}
	return controller.Run(ctx, controller.RunOptions{Factory: factory, Leader: elector}, c)
}
