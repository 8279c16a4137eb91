# Sound, pictures, pages: large libraries, hand-written assembly, threads.

picture() { awk 'BEGIN { print "P3 160 120 255"; for (y = 0; y < 120; y++) for (x = 0; x < 160; x++) print (x * y) % 256, (x + y * 2) % 256, (x ^ 2 + y) % 256 }' > in.ppm; }

## imagemagick
# packages: imagemagick
prepare() { picture; }
run() { convert in.ppm -resize 50% -blur 0x2 -rotate 13 -define png:exclude-chunks=date,time -strip out.png; convert in.ppm -quality 80 -strip out.jpg; identify out.png out.jpg | cut -d' ' -f1-3; compare -metric AE in.ppm in.ppm null:; echo; convert in.ppm -colors 16 -depth 8 gif:- | md5sum; convert -size 100x50 gradient:red-blue -posterize 4 ppm:- | md5sum; convert nothing.png x.png || echo "status $?"; montage in.ppm in.ppm -geometry +2+2 ppm:- | md5sum; }
settle() { rm -f out.png; sed -i 's/ @ .*//' "$ERR"; }

## ghostscript
# packages: ghostscript
prepare() { printf '%%!PS\n/Times-Roman findfont 24 scalefont setfont 72 700 moveto (Hello) show\n0 1 50 { /i exch def i 10 mul 100 moveto 300 i 12 mul lineto stroke } for\n/f { dup 2 lt { pop 1 } { dup 1 sub f mul } ifelse } def 10 f = showpage\n' > it.ps; }
run() { gs -q -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r72 -sOutputFile=it.ppm it.ps; gs -q -dBATCH -dNOPAUSE -sDEVICE=png16m -r50 -sOutputFile=it.png it.ps; ps2pdf it.ps it.pdf; gs -q -dBATCH -dNOPAUSE -sDEVICE=pgmraw -r36 -sOutputFile=- it.pdf | tail -c 1000 | md5sum; echo '1 0 div' | gs -q -dNODISPLAY -dBATCH - > /dev/null || echo "status $?"; }
settle() { rm -f it.pdf; }

## ffmpeg
# packages: ffmpeg
run() {
    ffmpeg -v error -f lavfi -i testsrc=d=1:s=160x120:r=10 -f lavfi -i sine=d=1 -threads 2 -c:v mpeg4 -c:a aac -bitexact -fflags +bitexact -y out.mkv; ffprobe -v error -show_entries stream=codec_name,width,nb_read_packets -count_packets -of csv out.mkv
    ffmpeg -v error -i out.mkv -vf scale=80:60,hflip -f framemd5 -bitexact -; ffmpeg -v error -f lavfi -i testsrc2=d=1:s=64x64:r=5 -c:v libx264 -preset veryfast -threads 2 -bitexact -y h.mp4; ffmpeg -v error -i h.mp4 -f md5 -; ffmpeg -v error -i nothing out.avi || echo "status $?"; ffmpeg -v error -f lavfi -i testsrc=d=1:s=64x64:r=3 -c:v libvpx -threads 1 -bitexact -f webm - | wc -c
}
settle() { :; }

## sox
# packages: sox
run() { sox -R -n -r 8000 -b 16 out.wav synth 1 sine 300-3300 vol 0.5; soxi out.wav; sox -R out.wav -r 16000 up.wav rate -v reverb 20 norm -3; sox out.wav -n stat; sox -R out.wav -t raw - fade 0.1 lowpass 1000 trim 0 0.5 | md5sum; sox -R -m out.wav out.wav mix.wav; sox nothing.wav x.wav || echo "status $?"; play --version > /dev/null || true; }

## x264
# packages: x264
prepare() { awk 'BEGIN { printf "YUV4MPEG2 W96 H64 F10:1 Ip A1:1 C420jpeg\n"; for (f = 0; f < 20; f++) { printf "FRAME\n"; for (i = 0; i < 96 * 64 * 3 / 2; i++) printf "%c", 33 + (i * (f + 3) + f * 17) % 90 } }' > in.y4m; }
run() { x264 --quiet --no-progress --threads 2 --preset medium -o out.264 in.y4m; x264 --quiet --no-progress --threads 1 --preset ultrafast --no-asm -o plain.264 in.y4m; x264 --quiet --no-progress --threads 4 --sliced-threads -o sliced.264 in.y4m; x264 --version | head -1; }
settle() { sed -i '/fps/d' "$ERR"; }

## x265
# packages: x265
prepare() { awk 'BEGIN { printf "YUV4MPEG2 W96 H64 F10:1 Ip A1:1 C420jpeg\n"; for (f = 0; f < 8; f++) { printf "FRAME\n"; for (i = 0; i < 96 * 64 * 3 / 2; i++) printf "%c", 33 + (i * (f + 3) + f * 17) % 90 } }' > in.y4m; }
run() { x265 --log-level none --no-progress --preset fast --pools 2 -o out.265 in.y4m 2>/dev/null; x265 --log-level none --no-progress --preset ultrafast --no-asm -o plain.265 in.y4m 2>/dev/null; }

## tesseract
# packages: tesseract-ocr imagemagick fonts-dejavu-core
prepare() { convert -size 600x80 xc:white -font /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf -pointsize 40 -fill black -draw 'text 10,55 "Count 12345 heads"' in.png; }
run() { tesseract in.png - 2>/dev/null; OMP_THREAD_LIMIT=1 tesseract in.png out --psm 7 hocr 2>/dev/null; tesseract --list-langs; tesseract nothing.png - || echo "status $?"; }

## povray
# packages: povray
prepare() { printf 'camera { location <0,2,-5> look_at <0,1,2> } light_source { <2,4,-3> color rgb <1,1,1> } sphere { <0,1,2>, 2 texture { pigment { color rgb <1,0.5,0> } finish { phong 1 } } } plane { <0,1,0>, -1 pigment { checker color rgb 0 color rgb 1 } }\n' > it.pov; }
run() { povray -D -GA +W80 +H60 +WT1 +FP it.pov 2>/dev/null; povray -D -GA +W80 +H60 +WT4 +A0.3 +FP +Oaa.ppm it.pov 2>/dev/null; povray -D -GA +W8 +H6 nothing.pov 2>/dev/null || echo "status $?"; }
settle() { rm -rf .povray; sed -i '/^# Render Date/d' *.ppm; }

## graphviz
# packages: graphviz
prepare() { awk 'BEGIN { print "digraph g {"; for (i = 0; i < 60; i++) print "n" i " -> n" (i * 7 + 3) % 60 ";"; print "}" }' > it.dot; }
run() { for p in dot neato circo twopi; do $p -Tsvg it.dot -o $p.svg; done; dot -Tplain it.dot | md5sum; gvpr 'N { print(name) }' it.dot | wc -l; echo 'digraph {' | dot -Tsvg || echo "status $?"; }

## gnuplot
# packages: gnuplot-nox
run() { gnuplot -e 'set terminal svg; set output "out.svg"; plot sin(x), cos(x) with points; set terminal dumb; set output; plot x**2; print gamma(5); fit a*x+b "-" via a,b' <<'Q' || echo "status $?"
1 2
2 4
3 6
e
Q
}
settle() { rm -f fit.log; sed -i '/iter\|delta\|chisq/d' "$ERR"; }

## jpeg-png-tools
# packages: libjpeg-turbo-progs netpbm optipng pngquant
prepare() { picture; }
run() { cjpeg -quality 75 in.ppm > a.jpg; djpeg a.jpg | md5sum; jpegtran -rotate 90 a.jpg > b.jpg; pnmtopng in.ppm > a.png; pngtopnm a.png | cmp - in.ppm || true; optipng -quiet -o2 -out c.png a.png; pngquant -f -o d.png --speed 3 16 a.png; pamscale 0.5 in.ppm | md5sum; ppmtogif in.ppm 2>/dev/null | md5sum || true; }

## webp-avif
# packages: webp libavif-bin netpbm
prepare() { picture; pnmtopng in.ppm > in.png; }
run() { cwebp -quiet -q 60 in.png -o a.webp; cwebp -quiet -lossless -mt in.png -o l.webp; dwebp -quiet a.webp -ppm -o - | md5sum; avifenc -j 2 -s 8 in.png a.avif > /dev/null; avifdec a.avif b.png > /dev/null; }

## flac-vorbis-opus-lame
# packages: flac vorbis-tools opus-tools lame sox
prepare() { sox -R -n -r 44100 -c 2 -b 16 in.wav synth 1 sine 440 vol 0.5; }
run() { flac -s -o a.flac in.wav; flac -s -d -o b.wav a.flac; cmp in.wav b.wav; oggenc -Q --serial 1 -o a.ogg in.wav; oggdec -Q -o c.wav a.ogg; opusenc --quiet --serial 1 in.wav a.opus; lame --quiet in.wav a.mp3; lame --quiet --decode a.mp3 d.wav; }

## latex-free-typesetting
# packages: groff
prepare() { printf '.TS\nbox;\nc c.\na\tb\n1\t2\n.TE\n.EQ\nx sup 2 over y\n.EN\n.PS\nbox; arrow; circle\n.PE\n' > it.ms; }
run() { groff -ms -t -e -p -Tps it.ms > it.ps; groff -ms -t -e -p -Tutf8 it.ms | head -5; wc -l it.ps; }
settle() { sed -i '/CreationDate\|Creator/d' it.ps; }

## pdf-tools
# packages: poppler-utils qpdf mupdf-tools ghostscript
prepare() { printf '%%!PS\n/Times-Roman findfont 24 scalefont setfont 72 700 moveto (Hello there) show showpage 72 700 moveto (Two) show showpage\n' > it.ps; ps2pdf it.ps it.pdf; }
run() { pdftotext it.pdf -; pdfinfo it.pdf | grep Pages; pdftoppm -r 30 it.pdf p; qpdf --qdf --deterministic-id it.pdf q.pdf; qpdf --check it.pdf; mutool draw -q -r 30 -o m%d.ppm it.pdf; mutool show it.pdf trailer | wc -l; qpdf nothing.pdf x.pdf || echo "status $?"; }

## rrdtool-plots
# packages: rrdtool
run() { rrdtool create a.rrd --start 1000000000 --step 60 DS:x:GAUGE:120:U:U RRA:AVERAGE:0.5:1:100; for i in 1 2 3 4 5 6 7 8; do rrdtool update a.rrd $((1000000000 + i * 60)):$((i * i)); done; rrdtool fetch a.rrd AVERAGE -s 1000000000 -e 1000000600; rrdtool graph a.png -s 1000000000 -e 1000000600 DEF:x=a.rrd:x:AVERAGE LINE:x#ff0000; rrdtool dump a.rrd | wc -l; rm a.rrd; }

## espeak-festival
# packages: espeak-ng
run() { espeak-ng -w a.wav 'Count the heads'; espeak-ng -q -x 'hello world'; }
settle() { rm -rf .config; }

## inkscape-free-svg
# packages: librsvg2-bin potrace netpbm
prepare() { picture; ppmtopgm in.ppm | pgmtopbm > in.pbm; printf '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><circle cx="30" cy="20" r="15" fill="red"/><path d="M0 0 Q 30 40 60 0" stroke="blue"/></svg>\n' > it.svg; }
run() { rsvg-convert it.svg -o a.png; rsvg-convert -f svg it.svg | wc -l; potrace -s in.pbm -o b.svg; }
