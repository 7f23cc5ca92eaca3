package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/google/pprof/profile"
)

func main() {
	title := flag.String("title", "", "what the picture is called (default: the file's name)")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: flamegraph [-title text] cpu.pprof > picture.svg")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if *title == "" {
		*title = flag.Arg(0)
	}
	if err := run(os.Stdout, *title, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "flamegraph:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, title, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return draw(out, title, tree(p))
}
